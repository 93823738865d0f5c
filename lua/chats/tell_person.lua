--[[
@summary Publishes a hint to a person's open event streams. Stores nothing.
@repeatable Showing a hint twice does no harm.
@flag    allow-oom
@key     channel  {NN}:on_user:<id>  CHANNEL
@arg     hint     text
]]
redis.call('SPUBLISH', channel_key, hint)
return ok()

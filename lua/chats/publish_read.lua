--[[
@summary Publishes a person's new read mark to their open event streams. Stores nothing.
@repeatable Showing a read mark twice does no harm.
@flag    allow-oom
@key     channel  {NN}:on_user:<id>  CHANNEL
@arg     hint     text
]]
redis.call('SPUBLISH', channel_key, hint)
return ok()

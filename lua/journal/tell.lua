--[[
@summary Publishes a flush hint, from a waiting front to the flushers or from a flusher to the fronts. Stores nothing.
@repeatable A repeated hint does no harm.
@flag    allow-oom
@key     channel  {NN}:on_flushed  CHANNEL   or {NN}:on_flush_asked
@arg     hint     text
]]
redis.call('SPUBLISH', channel_key, hint)
return ok()

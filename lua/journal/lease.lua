--[[
@summary Acquires or renews the lease under which a flusher reads a journal.
@why     Only one of two concurrent flushers may get the lease. The lease only avoids duplicate work and is not a fence.
@key     lease   {NN}:flush_lease  STRING   id of the flusher
@arg     owner   text
@arg     ms      int
@err     taken
@flag    allow-oom
]]
local holder = redis.call('GET', lease_key)
if holder and holder ~= owner then return refuse('taken') end
redis.call('SET', lease_key, owner, 'PX', ms)
return ok()

--[[
@summary Takes or renews the lease under which a flusher reads a journal.
@why     Two flushers that ask at one instant must not both hear yes: the lease saves work (it does not fence).
@key     lease   {NN}:flush_lease  STRING   the flusher
@arg     owner   text
@arg     ms      int
@err     taken
@flag    allow-oom
]]
local holder = redis.call('GET', lease_key)
if holder and holder ~= owner then return refuse('taken') end
redis.call('SET', lease_key, owner, 'PX', ms)
return ok()

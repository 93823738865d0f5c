--[[
@summary Releases a lease that the flusher still holds.
@why     Between a check and a separate deletion, the lease could pass to another flusher.
@key     lease   {NN}:flush_lease  STRING   id of the flusher
@arg     owner   text
@flag    allow-oom
]]
if redis.call('GET', lease_key) == owner then redis.call('DEL', lease_key) end
return ok()

--[[
@summary Releases the lease if the flusher still holds it.
@why     Another flusher could get the lease between a check and a separate deletion.
@key     lease   {NN}:flush_lease  STRING   id of the flusher
@arg     owner   text
@flag    allow-oom
]]
if redis.call('GET', lease_key) == owner then redis.call('DEL', lease_key) end
return ok()

--[[
@summary Gives a flusher's lease back, if it still holds it.
@why     Between a look and a deletion the lease may have passed to another flusher.
@key     lease   {NN}:flush_lease  STRING   the flusher
@arg     owner   text
@flag    allow-oom
]]
if redis.call('GET', lease_key) == owner then redis.call('DEL', lease_key) end
return ok()

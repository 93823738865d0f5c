--[[
@summary Re-encrypts a stored answer with another key.
@why     A call may store its answer or release the key meanwhile, so only the answer that was read is replaced.
@repeatable After the first run, the stored answer no longer equals the one that was read.
@flag    allow-oom
@key     claim  {NN}:idempotency:<caller>:<digest>  HASH
@arg     was    bytes  the sealed answer that was read
@arg     box    bytes  the same answer, sealed with the new key
@ok      done   flag
]]
if redis.call('HGET', claim_key, 'a') ~= was then return ok(0) end
redis.call('HSET', claim_key, 'a', box)
return ok(1)

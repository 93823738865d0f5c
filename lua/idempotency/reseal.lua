--[[
@summary Replaces a stored answer with the same answer, encrypted with another key.
@why     Meanwhile a call may store another answer or release the key, so the script replaces only the answer that the
         caller read.
@repeatable After the first run, the stored answer no longer equals the answer that the caller read.
@flag    allow-oom
@key     claim  {NN}:idempotency:<caller>:<digest>  HASH
@arg     was    bytes  the sealed answer that was read
@arg     box    bytes  the same answer, sealed with the new key
@ok      done   flag
]]
if redis.call('HGET', claim_key, 'a') ~= was then return ok(0) end
redis.call('HSET', claim_key, 'a', box)
return ok(1)

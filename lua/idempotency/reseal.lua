--[[
@summary Puts a kept answer under another encryption key.
@why     A call may settle or give back the key at the same instant: only the answer that was read is replaced.
@repeatable What was replaced is not what was read any more.
@flag    allow-oom
@key     claim  {NN}:idempotency:<caller>:<digest>  HASH
@arg     was    bytes  the sealed answer as it was read
@arg     box    bytes  the same answer, sealed anew
@ok      done   flag
]]
if redis.call('HGET', claim_key, 'a') ~= was then return ok(0) end
redis.call('HSET', claim_key, 'a', box)
return ok(1)

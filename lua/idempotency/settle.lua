--[[
@summary Stores the answer of a call under its idempotency key, or releases the key for another call.
@why     If two calls store an answer, the script keeps the first. A call that lost its claim must not release the claim
         of another call.
@repeatable A stored answer is kept, and a released key is no longer held.
@flag    allow-oom
@key     claim   {NN}:idempotency:<caller>:<digest>  HASH
@key     bytes   {NN}:idempotency_bytes:<caller>     STRING  total bytes stored for the caller's keys
@arg     holder  text
@arg     answer  bytes  the encrypted answer; empty to release the key
@arg     size    int    bytes that stay stored because of the call; 0 if none
@ok      noted   flag   whether anything changed
]]
local known = redis.call('HMGET', claim_key, 's', 'h', 'a')
if not known[1] or known[3] then return ok(0) end
if answer ~= '' or (size ~= '0' and known[2] == holder) then
  -- Sets the expiry with the first stored answer, so that the count of stored bytes restarts at 0 after a day.
  if redis.call('INCRBY', bytes_key, size) == tonumber(size) then redis.call('PEXPIRE', bytes_key, LIMITS.idempotency_ttl_ms) end
end
if answer ~= '' then
  redis.call('HDEL', claim_key, 'h', 'u')
  redis.call('HSET', claim_key, 'a', answer)
  return ok(1)
end
if known[2] ~= holder then return ok(0) end
redis.call('HSET', claim_key, 'u', 0)
return ok(1)

--[[
@summary Notes the answer of a call under its idempotency key, or gives the key back for another run.
@why     Of two runs the first answer stays; a run that lost its hold must not take another's away.
@repeatable An answer that is there stays, and what was given back is not held.
@flag    allow-oom
@key     claim   {NN}:idempotency:<caller>:<digest>  HASH
@key     bytes   {NN}:idempotency_bytes:<caller>     STRING  kept for the caller's keys
@arg     holder  text
@arg     answer  bytes  sealed; nothing to give the key back
@arg     size    int    bytes that stay because of the call; 0 when nothing does
@ok      noted   flag   whether anything changed
]]
local known = redis.call('HMGET', claim_key, 's', 'h', 'a')
if not known[1] or known[3] then return ok(0) end
if answer ~= '' or (size ~= '0' and known[2] == holder) then
  -- Begins with the first key of a day, and ends with it.
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

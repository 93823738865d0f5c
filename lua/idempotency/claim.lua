--[[
@summary Claims an idempotency key for a call. If another call has the key, returns that call's answer or state.
@why     If two nodes receive a call with the same key, only one of them may execute the call.
@repeatable A holder that claims its own key again succeeds.
@flag    allow-oom
@key     claim  {NN}:idempotency:<caller>:<digest>  HASH  f fingerprint, s seed, h holder, u held until (ms), a answer
@key     live   {NN}:idempotency_live:<caller>      ZSET  digest -> expiry (ms)
@key     bytes  {NN}:idempotency_bytes:<caller>     STRING  total bytes stored for the caller's keys
@arg     digest       text   the last part of the claim's key
@arg     fingerprint  bytes  of method and parameters
@arg     seed         text   seed of the request ids, if the key is new
@arg     holder       text   the call that claims the key
@ok      seed    text    the run derives its request ids from it
@ok      answer  bytes?  the encrypted answer; null if the caller must execute the call
@ok      again   flag    an earlier run may have changed something
@err     pending
@err     other_parameters
@err     too_many
]]
local _, ms = now()
local known = redis.call('HMGET', claim_key, 'f', 's', 'h', 'u', 'a')
if known[1] then
  if known[1] ~= fingerprint then return refuse('other_parameters') end
  if known[5] then return ok(known[2], known[5], 1) end
  if known[3] ~= holder and tonumber(known[4]) > ms then return refuse('pending') end
  -- Nobody holds the key, because its previous holder died or released it. The next execution derives the same request
  -- ids, so scripts recognise changes that were already made.
  redis.call('HSET', claim_key, 'h', holder, 'u', ('%.0f'):format(ms + LIMITS.idempotency_lease_ms))
  return ok(known[2], false, 1)
end
local at = ('%.0f'):format(ms)
if tonumber(redis.call('GET', bytes_key) or 0) >= LIMITS.idempotency_bytes_max then return refuse('too_many') end
if redis.call('ZCOUNT', live_key, '(' .. at, '+inf') >= LIMITS.idempotency_keys_max then return refuse('too_many') end

-- Removes only a limited number of expired claims per call, because many thousands may have expired since the previous
-- call.
local ended = redis.call('ZCOUNT', live_key, '-inf', at)
if ended > 0 then redis.call('ZREMRANGEBYRANK', live_key, 0, math.min(ended, LIMITS.script_entries_max) - 1) end
redis.call('ZADD', live_key, ('%.0f'):format(ms + LIMITS.idempotency_ttl_ms), digest)
redis.call('PEXPIRE', live_key, LIMITS.idempotency_ttl_ms)
redis.call('HSET', claim_key, 'f', fingerprint, 's', seed, 'h', holder, 'u', ('%.0f'):format(ms + LIMITS.idempotency_lease_ms))
redis.call('PEXPIRE', claim_key, LIMITS.idempotency_ttl_ms)
return ok(seed, false, 0)

--[[
@summary Claims an idempotency key for a call that is about to run, or tells what came of the call that has it.
@why     Of two calls with one key on two nodes only one may run.
@repeatable The same holder claims what it holds again and finds it its own.
@include clock
@flag    allow-oom
@key     claim  {NN}:idempotency:<caller>:<digest>  HASH  f fingerprint, s seed, h holder, u held until (ms), a answer
@key     live   {NN}:idempotency_live:<caller>      ZSET  digest -> ends at (ms)
@key     bytes  {NN}:idempotency_bytes:<caller>     STRING  kept for the caller's keys
@arg     digest       text   the last part of the claim's key
@arg     fingerprint  bytes  of method and parameters
@arg     seed         text   of the request ids, if the key is new
@arg     holder       text   who asks
@ok      seed    text    from which the run makes its request ids
@ok      answer  bytes?  sealed; null when the caller is to run
@ok      again   flag    a former run may have changed something
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
  -- Whoever held it is gone or gave it back: the next run makes the same request ids, so what was applied is recognised.
  redis.call('HSET', claim_key, 'h', holder, 'u', ('%.0f'):format(ms + LIMITS.idempotency_lease_ms))
  return ok(known[2], false, 1)
end
local at = ('%.0f'):format(ms)
if tonumber(redis.call('GET', bytes_key) or 0) >= LIMITS.idempotency_bytes_max then return refuse('too_many') end
if redis.call('ZCOUNT', live_key, '(' .. at, '+inf') >= LIMITS.idempotency_keys_max then return refuse('too_many') end

-- Some at a time: a hundred thousand may have ended since the last call.
local ended = redis.call('ZCOUNT', live_key, '-inf', at)
if ended > 0 then redis.call('ZREMRANGEBYRANK', live_key, 0, math.min(ended, LIMITS.script_entries_max) - 1) end
redis.call('ZADD', live_key, ('%.0f'):format(ms + LIMITS.idempotency_ttl_ms), digest)
redis.call('PEXPIRE', live_key, LIMITS.idempotency_ttl_ms)
redis.call('HSET', claim_key, 'f', fingerprint, 's', seed, 'h', holder, 'u', ('%.0f'):format(ms + LIMITS.idempotency_lease_ms))
redis.call('PEXPIRE', claim_key, LIMITS.idempotency_ttl_ms)
return ok(seed, false, 0)

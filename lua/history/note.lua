--[[
@summary Records the last Postgres commit, and the tokens, bots and users that this commit revoked or accepted again.
@why     Redis uses these records to detect that Postgres lost commits, and to repeat lost revocations. The commits of a
         replaced server are lost, so the script records only the revocations of such a server.
@repeatable Marks only grow, and a revocation is recorded once.
@flag    allow-oom
@key     history  {NN}:postgres  HASH
@key     revoked  {NN}:revoked   ZSET   lookup value of a token, admin:<fingerprint>, bot:<id> or user:<id> -> ms
@arg     running  text   database, timeline and start time of the server that committed
@arg     shard    int
@arg     mark     int    the shard's commit mark
@arg     id       int    the last id assigned
@arg     version  int    the last version of a control record
@args    changes  text   + and a revoked subject, or - and a subject that is accepted again
@ok      replaced  flag   another server has replaced this one and lacks the commit
]]
local function grow(field, value)
  if tonumber(redis.call('HGET', history_key, field) or 0) < tonumber(value) then redis.call('HSET', history_key, field, value) end
end
local replaced = redis.call('HEXISTS', history_key, 'gone:' .. running) == 1
if not replaced then grow('mark:' .. shard, mark) end
grow('id', id)
grow('version', version)
if #changes == 0 then return ok(replaced and 1 or 0) end

-- If the Postgres server that committed the revocations was replaced, raises the incarnation, because the current
-- server lacks the revocations. The nodes then repeat the revocations on the current server.
if replaced then redis.call('HINCRBY', history_key, 'incarnation', 1) end
local _, ms = now()
for _, change in ipairs(changes) do
  if change:sub(1, 1) == '+' then
    redis.call('ZADD', revoked_key, ms, change:sub(2))
  elseif not replaced then
    redis.call('ZREM', revoked_key, change:sub(2))
  end
end
redis.call('ZREMRANGEBYSCORE', revoked_key, '-inf', ms - LIMITS.revocation_age_ms_max)
redis.call('ZREMRANGEBYRANK', revoked_key, 0, -LIMITS.revocations_kept_max - 1)
return ok(replaced and 1 or 0)

--[[
@summary Notes how far Postgres has committed, and what was revoked there.
@why     A Postgres that went back in time is recognised by what Redis knows of it, and its revocations are made again.
@repeatable Marks only grow, and a revocation is noted once.
@include clock
@flag    allow-oom
@key     history  {NN}:postgres  HASH
@key     revoked  {NN}:revoked   ZSET   lookup value of a token, bot:<id> or user:<id> -> ms
@arg     shard    int
@arg     mark     int    of the shard
@arg     id       int    the last id that was handed out
@arg     version  int    the last version of a control record
@args    changes  text   + and what was revoked, - and what is accepted again
]]
local function grow(field, value)
  if tonumber(redis.call('HGET', history_key, field) or 0) < tonumber(value) then redis.call('HSET', history_key, field, value) end
end
grow('mark:' .. shard, mark)
grow('id', id)
grow('version', version)
if #changes == 0 then return ok() end

local _, ms = now()
for _, change in ipairs(changes) do
  if change:sub(1, 1) == '+' then
    redis.call('ZADD', revoked_key, ms, change:sub(2))
  else
    redis.call('ZREM', revoked_key, change:sub(2))
  end
end
redis.call('ZREMRANGEBYSCORE', revoked_key, '-inf', ms - LIMITS.revocation_age_ms_max)
redis.call('ZREMRANGEBYRANK', revoked_key, 0, -LIMITS.revocations_kept_max - 1)
return ok()

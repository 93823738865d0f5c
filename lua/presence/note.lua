--[[
@summary Records that users have windows open on a node, or no longer have any.
@why     Several nodes may hold windows of one user, and a reader must see none once all are closed.
@repeatable A second run records the same.
@flag    allow-oom
@derived windows {NN}:windows:<user>  ZSET  node -> until (ms)
@arg     node    text
@arg     ttl_ms  int    how long the record is valid; 0 when the windows are closed
@args    users   text
]]
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local ttl = tonumber(ttl_ms)
for _, user in ipairs(users) do
  local key = windows_key(user)
  if ttl == 0 then
    redis.call('ZREM', key, node)
  else
    redis.call('ZREMRANGEBYSCORE', key, '-inf', ('%.0f'):format(now))
    redis.call('ZADD', key, ('%.0f'):format(now + ttl), node)
    redis.call('PEXPIRE', key, ttl)
  end
end
return ok()

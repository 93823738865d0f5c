--[[
@summary Notes that people have windows open on a node, or have none any more.
@why     Nodes that hold windows of one person note them side by side, and a reader must see none where all are gone.
@repeatable A second run notes the same.
@flag    allow-oom
@derived windows {NN}:windows:<user>  ZSET  node -> until (ms)
@arg     node    text
@arg     ttl_ms  int    how long this holds; 0 where the windows are gone
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

--[[
@summary Records that users have browser windows open on a node, or have closed all of these windows.
@why     One user may have windows on several nodes. Once the user has closed all windows, a reader must see none.
@repeatable A second run records the same state.
@flag    allow-oom
@derived windows {NN}:windows:<user>  ZSET  node -> until (ms)
@arg     node    text
@arg     ttl_ms  int    how long the record is valid; 0 when the windows are closed
@args    users   text
]]
local _, ms = now()
local ttl = tonumber(ttl_ms)
for _, user in ipairs(users) do
  local key = windows_key(user)
  if ttl == 0 then
    redis.call('ZREM', key, node)
  else
    redis.call('ZREMRANGEBYSCORE', key, '-inf', ('%.0f'):format(ms))
    redis.call('ZADD', key, ('%.0f'):format(ms + ttl), node)
    redis.call('PEXPIRE', key, ttl)
  end
end
return ok()

--[[
@summary Records a flusher's heartbeat or removes it, and returns the live flushers.
@why     Only Redis' clock decides which flushers are late, because the clocks of nodes may differ.
@key     flushers   {NN}:flushers  HASH   flusher id -> time of its last heartbeat (ms)
@arg     id         text
@arg     stale_ms   int            age at which a flusher counts as dead
@arg     leaving    flag
@ok      live       texts
@flag    allow-oom
]]
local _, ms = now()
if leaving then
  redis.call('HDEL', flushers_key, id)
else
  redis.call('HSET', flushers_key, id, ('%.0f'):format(ms))
end

local live = {}
local seen = redis.call('HGETALL', flushers_key)
for i = 1, #seen, 2 do
  if ms - tonumber(seen[i + 1]) > tonumber(stale_ms) then
    redis.call('HDEL', flushers_key, seen[i])
  else
    live[#live + 1] = seen[i]
  end
end
return ok(live)

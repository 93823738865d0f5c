--[[
@summary Finds the bots of a partition that need a worker.
         These bots are due, not leased, and were not woken recently.
@why     If several nodes sweep at once, only one of them may wake a bot.
@flag    allow-oom
@key     due    {NN}:webhooks_due       ZSET
@derived state  {NN}:queue_state:<bot>  HASH
@arg     limit  int
@ok      wake     texts   bots to wake
@ok      unserved  texts   bots that were woken before, but not served
@ok      more   flag
]]
local _, ms = now()
local wake, unserved = {}, {}
local found = redis.call('ZRANGEBYSCORE', due_key, '-inf', ms, 'LIMIT', 0, limit)
for _, bot in ipairs(found) do
  local s = redis.call('HMGET', state_key(bot), 'hook', 'leased', 'hold', 'rung')
  local later = math.max(tonumber(s[2] or 0), tonumber(s[3] or 0), tonumber(s[4] or 0) + LIMITS.webhook_ring_interval_ms)
  if not s[1] then
    redis.call('ZREM', due_key, bot)
  elseif later > ms then
    redis.call('ZADD', due_key, later, bot)
  else
    redis.call('HSET', state_key(bot), 'rung', ('%.0f'):format(ms))
    redis.call('ZADD', due_key, ms + LIMITS.webhook_ring_interval_ms, bot)
    -- `rung` is the time of the last wake-up. A worker that takes the lease removes `rung`. If `rung` is still set, no
    -- worker reacted to the last wake-up.
    local list = s[4] and unserved or wake
    list[#list + 1] = bot
  end
end
return ok(wake, unserved, #found == tonumber(limit) and 1 or 0)

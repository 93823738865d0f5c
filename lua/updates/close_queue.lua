--[[
@summary Closes the queue of a deleted bot. The queue then accepts no updates and no messages, and expires later.
@why     If the script removed the queue at once, an update in flight would open it again.
@repeatable Closing a queue twice changes nothing.
@flag    allow-oom
@key     state    {NN}:queue_state:<bot>   HASH
@key     queue    {NN}:queue:<bot>         STREAM
@key     marks    {NN}:queue_marks:<bot>   HASH
@key     due      {NN}:webhooks_due        ZSET
@arg     version  int    version of the write policy
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if redis.call('EXISTS', state_key) == 0 then return ok() end
local bot = state_key:match('%d+$')
-- Closes the queues of all slots, because even the queue of a deleted route may have updates.
local slots = redis.call('HEXISTS', state_key, 'routes_version') == 1 and LIMITS.route_slots_max or 0
for slot = 1, slots do
  local state = route_key(state_key, bot, slot)
  if redis.call('EXISTS', state) == 1 then
    for _, kind in ipairs({'queue', 'parked', 'retries', 'attempts'}) do
      redis.call('UNLINK', (state:gsub('queue_state', kind, 1)))
    end
    redis.call('HSET', state, 'bytes', 0, 'hook_version', version)
    redis.call('HDEL', state, 'hook', 'since', 'cur')
    redis.call('PEXPIRE', state, LIMITS.queue_age_ms_max)
    redis.call('ZREM', due_key, route_queue(bot, slot))
    redis.call('SPUBLISH', (state:gsub('queue_state', 'on_bot', 1)), 'w')
  end
end
-- If a replay is running, the worker of the replay notices that the bot no longer has a webhook, and closes the
-- replay's queue.
redis.call('UNLINK', queue_key, routes_key)
redis.call('HDEL', state_key, 'own')
-- Raises the version of the routes, so that a route set just before the deletion is not installed afterwards.
redis.call('HSET', state_key, 'bytes', 0, 'mask', 0, 'routes_version', version, 'wi', inc, 'wv', version, 'wp', 'gone')
redis.call('PEXPIRE', state_key, LIMITS.queue_age_ms_max)
if redis.call('EXISTS', marks_key) == 1 then redis.call('PEXPIRE', marks_key, LIMITS.queue_age_ms_max) end
return ok()

--[[
@summary Closes the queue of a replay and drops its pending updates.
@why     A worker that still delivers updates of the replay loses its lease at the same moment.
@repeatable A closed queue is not closed again.
@flag    allow-oom
@key     state    {NN}:queue_state:<bot>  HASH
@key     due      {NN}:webhooks_due       ZSET
@key     channel  {NN}:on_bot:<bot>       CHANNEL
@arg     bot     text
@arg     replay  text   id of the replay
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local state = route_key(state_key, bot, LIMITS.replay_slot)
if redis.call('HGET', state, 'replay') ~= replay then return ok() end
for _, kind in ipairs({'queue_state', 'queue', 'parked', 'retries', 'attempts'}) do
  redis.call('UNLINK', (state:gsub('queue_state', kind, 1)))
end
redis.call('ZREM', due_key, route_queue(bot, LIMITS.replay_slot))
redis.call('SPUBLISH', route_key(channel_key, bot, LIMITS.replay_slot), 'w')
return ok()

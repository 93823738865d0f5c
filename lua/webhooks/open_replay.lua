--[[
@summary Opens the queue of a replay. Replaces the queue of an earlier replay.
@why     A repeated call must not restart a replay that is in progress.
@repeatable The queue of a replay is opened once.
@flag    allow-oom
@key     state  {NN}:queue_state:<bot>  HASH
@arg     bot     text
@arg     replay  text   id of the replay
@arg     slot    text   slot of the target, 0 for the bot itself
@arg     from    text   id after which the replay starts
@err     queue_missing
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local q = read_queue(state_key)
if not q then return refuse('queue_missing') end
local state = route_key(state_key, bot, LIMITS.replay_slot)
if redis.call('HGET', state, 'replay') ~= replay then
  for _, kind in ipairs({'queue', 'parked', 'retries', 'attempts'}) do
    redis.call('UNLINK', (state:gsub('queue_state', kind, 1)))
  end
  redis.call('DEL', state)
  redis.call('HSET', state, 'seq', ('%.0f'):format(q.seq), 'inc', ('%.0f'):format(q.inc), 'bytes', 0, 'mask', 0, 'replay', replay,
    'to', slot, 'at', from, 'fed', 0)
  redis.call('PEXPIRE', state, LIMITS.replay_state_ttl_ms)
end
return ok()

--[[
@summary Adds the next updates of a replay to the replay's queue, and moves the replay's cursor.
@why     Two workers may perform the same step. The cursor and the updates must change together, so that the updates are
         added only once.
@repeatable A step that does not start at the cursor changes nothing.
@key     channel  {NN}:on_bot:<bot>  CHANNEL
@arg     bot      text
@arg     replay   text   id of the replay
@arg     from     text   the cursor before this step
@arg     to       text   the cursor after this step
@args    updates  bytes  groups of nine: original id, kind, chat, id, record, from, peer, reply, extra
@ok      wake     flag   the queue of the replay must be woken
@err     moved
]]
local why = closed(meta_key, journal_key, run)
if why then return refuse(why) end
local slot = LIMITS.replay_slot
local state = route_key(state_key, bot, slot)
local s = redis.call('HMGET', state, 'replay', 'at')
if s[1] ~= replay or s[2] ~= from then return refuse('moved') end
local q, r = read_queue(state_key), read_queue(state)
if not q then return refuse('queue_missing') end
local _, ms = now()
local version = redis.call('HGET', meta_key, 'ver')
local inc = incarnation_of(version)
-- Takes the bot's next ids, because update ids are unique within a bot.
local count = #updates / 9
r.seq = math.max(q.seq + (inc - q.inc) * LIMITS.incarnation_sequence_skip, r.seq)
r.inc, r.mask = inc, 1
local own = {meta = meta_key, journal = journal_key, state = state, queue = route_key(queue_key, bot, slot),
  channel = route_key(channel_key, bot, slot), due = due_key, bot = route_queue(bot, slot)}
if count > 0 then redis.call('HSET', state_key, 'seq', ('%.0f'):format(r.seq + count), 'inc', ('%.0f'):format(inc)) end
for i = 1, #updates, 9 do
  push_update(r, own, version, ms, 1, updates[i + 1], updates[i + 2], updates[i + 3], updates[i + 4], updates[i + 5],
    updates[i + 6], updates[i + 7], updates[i + 8], updates[i])
end
redis.call('HSET', state, 'at', to)
redis.call('HINCRBY', state, 'fed', count)
redis.call('PEXPIRE', state, LIMITS.replay_state_ttl_ms)
if count > 0 then redis.call('PEXPIRE', own.queue, LIMITS.replay_state_ttl_ms) end
return ok(own.wake and 1 or 0)

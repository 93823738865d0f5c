--[[
@summary Adds updates from another partition to a bot's queue, in order and without duplicates.
@why     The script changes the queue and the mark of the source partition together, so that repeated forwarding adds
         nothing. If Redis restarted after the updates were read, it may have lost earlier updates, so the script
         refuses.
@repeatable The mark prevents duplicates.
@flag    allow-oom
@key     marks    {NN}:queue_marks:<bot>   HASH
@key     channel  {NN}:on_bot:<bot>        CHANNEL
@arg     bot      text
@arg     source   text    partition the updates come from
@arg     expected text    run id of this Redis before the updates were read
@args    updates  bytes   groups of ten: outbox version, kind bit, kind, chat, id, record, from, peer, reply, extra
@ok      accepted int
@ok      wake     int     queues to wake, one bit for each slot
@err     moved
]]
local why = closed(meta_key, journal_key, run, LIMITS.journal_reserve)
if why then return refuse(why) end
if run ~= expected then return refuse('moved') end
local q = read_queue(state_key)
if not q then return refuse('queue_missing') end
local mark = tonumber(redis.call('HGET', marks_key, source) or 0)
local _, ms = now()
local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, channel = channel_key, bot = bot,
  due = due_key}
local version = tonumber(redis.call('HGET', meta_key, 'ver'))
local accepted = 0
local newest = mark
for i = 1, #updates, 10 do
  local id = tonumber(updates[i])
  if id > newest then
    newest = id
    accepted = accepted + 1
    push_update(q, at, version, ms, tonumber(updates[i + 1]), unpack(updates, i + 2, i + 9))
  end
end
if newest > mark then redis.call('HSET', marks_key, source, newest) end
return ok(accepted, at.wake or 0)

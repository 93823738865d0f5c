--[[
@summary Adds dead letters to the end of a bot's queue again. Each keeps the id that receivers know.
@why     A repeated call must not add them twice, because their source rows are already deleted.
@key     channel  {NN}:on_bot:<bot>        CHANNEL
@arg     bot      text
@args    updates  bytes   groups of nine: original id, kind, chat, id, record, from, peer, reply, extra
@ok      queued   int
@ok      wake     flag    the bot's worker must be woken
]]
local why = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse(why) end
local done = redis.call('GET', request_key)
if done then return ok(tonumber(done), 0) end
if why then return refuse(why) end
local q = read_queue(state_key)
if not q then return refuse('queue_missing') end
local _, ms = now()
local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, channel = channel_key, bot = bot,
  due = due_key}
-- Does not apply `allowed_updates`, because that was done when the update was created.
q.mask = 1
local version = tonumber(redis.call('HGET', meta_key, 'ver'))
for i = 1, #updates, 9 do
  push_update(q, at, version, ms, 1, updates[i + 1], updates[i + 2], updates[i + 3], updates[i + 4], updates[i + 5],
    updates[i + 6], updates[i + 7], updates[i + 8], updates[i])
end
remember(request_key, #updates / 9)
return ok(#updates / 9, at.wake and 1 or 0)

--[[
@summary Appends dead letters to a bot's queue again. Each update keeps its original id, which receivers may know.
@why     A repeated call must not add dead letters twice. It cannot check their source rows, which are already deleted.
@key     channel  {NN}:on_bot:<bot>        CHANNEL
@arg     bot      text
@args    updates  bytes   groups of ten: original id, kind, chat, id, record, from, peer, reply, extra, slot
@ok      queued   int
@ok      wake     int     queues to wake, one bit for each slot
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
-- Ignores `allowed_updates`, because the filter was applied when the update was created.
q.mask = 1
local version = tonumber(redis.call('HGET', meta_key, 'ver'))
local wake = 0
for i = 1, #updates, 10 do
  local to, own = q, at
  local slot = updates[i + 9]
  -- Queues an update of a route for the same route, unless the route was deleted.
  local route = slot ~= '' and read_queue(route_key(state_key, bot, slot))
  if route and route.hook then
    route.mask, to = 1, route
    own = {meta = meta_key, journal = journal_key, state = route_key(state_key, bot, slot), queue = route_key(queue_key, bot, slot),
      channel = route_key(channel_key, bot, slot), bot = route_queue(bot, slot), due = due_key}
  end
  push_update(to, own, version, ms, 1, updates[i + 1], updates[i + 2], updates[i + 3], updates[i + 4], updates[i + 5],
    updates[i + 6], updates[i + 7], updates[i + 8], updates[i])
  if own.wake and own ~= at then wake = bit.bor(wake, 2 ^ slot) end
end
remember(request_key, #updates / 10)
return ok(#updates / 10, bit.bor(wake, at.wake or 0))

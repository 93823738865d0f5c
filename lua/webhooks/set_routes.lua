--[[
@summary Replaces the webhook routes of a bot.
         First moves the pending updates of removed routes to the end of the bot's own queue, a limited number per
         call.
@why     A removed route gets no update after its last pending update has moved. The updates of a chat therefore stay in
         order.
@repeatable Each version is installed once. An update that was moved is no longer in the queue of its route.
@flag    allow-oom
@key     channel  {NN}:on_bot:<bot>  CHANNEL
@arg     bot      text
@arg     routes   bytes  msgpack map for `install_routes`
@args    removed  text   slots of removed routes
@ok      done     flag   0: call the script again
@ok      wake     int    queues to wake, one bit for each slot
@ok      strays   texts  slots of installed routes that are neither in `routes` nor in `removed`: nothing was done, and
                         the next call must remove them
]]
local next, list = cmsgpack.unpack(routes), redis.call('HGET', routes_key, 'list')
-- Returns early in the most frequent case: the bot has no routes and gets none.
if not list and #next.list == 0 and #removed == 0 then return ok(1, 0, {}) end
local why = closed(meta_key, journal_key, run)
if why then return refuse(why) end
local q = read_queue(state_key)
if not q then return refuse('queue_missing') end
if next.version <= tonumber(redis.call('HGET', state_key, 'routes_version') or 0) then return ok(1, 0, {}) end
-- A Postgres that was restored to an earlier state may not know all installed routes. Updates in the queues of these
-- routes must not be lost.
local known, strays = {}, {}
for _, slot in ipairs(removed) do known[tonumber(slot)] = true end
for _, route in ipairs(next.list) do known[route[1]] = true end
for _, route in ipairs(list and cmsgpack.unpack(list) or {}) do
  if not known[route[1]] then strays[#strays + 1] = ('%.0f'):format(route[1]) end
end
if #strays > 0 then return ok(0, 0, strays) end
local _, ms = now()
local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, channel = channel_key, bot = bot,
  due = due_key, routes = routes_key}
-- Moves the updates of a deleted route to the bot's own queue, even if this queue does not accept their kind. Each
-- update keeps its id, because receivers may know it.
q.mask = 1
local counter = redis.call('HGET', meta_key, 'ver')
for _, slot in ipairs(removed) do
  local state, queue = route_key(state_key, bot, slot), route_key(queue_key, bot, slot)
  local entries, bytes, more = read_within(queue, '-', '+', LIMITS.webhook_take_max)
  for _, entry in ipairs(entries) do
    local e = entry[2]
    push_update(q, at, counter, ms, 1, e[2], e[6], e[8], e[10], e[12], e[14], e[16], e[18], e[20] or entry[1]:match('^%d+'))
  end
  if #entries > 0 then
    redis.call('XTRIM', queue, 'MINID', (tonumber(entries[#entries][1]:match('%d+')) + 1) .. '-0')
    redis.call('HINCRBY', state, 'bytes', ('%d'):format(-bytes))
  end
  if more then return ok(0, at.wake or 0, {}) end
  -- Removes the number of dead letters of the deleted route, because a later route may use the same slot.
  redis.call('HDEL', state, 'dead')
end
install_routes(at, next)
return ok(1, at.wake or 0, {})

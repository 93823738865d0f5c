--[[
@summary Performs one step of a consumer's long poll or stream.
         The step renews the consumer's lease, confirms updates, takes over the chats of consumers that died, and reads
         the updates of the consumer's own chats.
@why     At any time, only one consumer may get the updates of a chat. A consumer that died and its successor must not
         both change who holds a chat.
@repeatable Confirmed updates stay confirmed. Updates that were read are read again until they are confirmed.
@flag    allow-oom
@key     channel  {NN}:on_bot:<bot>       CHANNEL
@arg     bot      text
@arg     name     text    the consumer
@arg     poll     text    random name of this poll or stream
@arg     first    flag    whether this is the first step of the poll
@arg     offset   int     the first step confirms the updates below it that the consumer got
@arg     limit    text    the most updates; for a stream, a space and the last update that it sent follow
@arg     mask     text    new mask of kinds, or empty
@arg     lease    int     ms without a step after which others may take the consumer's chats
@ok      rows     raw     stream entries, fewer than `limit` where they are large
@ok      more     flag    the step had too much to do, and read nothing: call again
@ok      wait     int     ms until the lease of another consumer ends, -1 for none
@ok      sharing  int     how many consumers have a lease
@ok      held     int     the unconfirmed updates that the consumer got
@ok      full     flag    the consumer gets no more before it confirms some
@ok      rest     flag    there may be more updates that no consumer has
@err     webhook_active
@err     terminated
@err     terminated_by_webhook
@err     too_many_consumers
@err     lapsed
]]
local s = redis.call('HMGET', state_key, 'seq', 'poll', 'hook', 'leased', 'mask')
if not s[1] then return refuse('queue_missing') end
if s[3] then return refuse(first and 'webhook_active' or 'terminated_by_webhook') end
if redis.call('HGET', meta_key, 'run') ~= run then return refuse('stale_run') end
local shared = shared_until(s[2])
local most, last = limit:match('^(%d+) ?(%d*)$')
local is_stream = last ~= ''
local c = redis.call('HMGET', consumption_key, 'cur', 'p:' .. name, 'o:' .. name)
if not first and (shared == 0 or (c[2] and c[2] ~= poll)) then return refuse('terminated') end
local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, channel = channel_key, bot = bot,
  consumers = consumers_key, consumption = consumption_key, assigned = assigned_key, unsent = unsent_key,
  holders = holders_key}
local keys = {consumption_key, consumers_key, assigned_key, unsent_key, holders_key}
local _, ms = now()
-- Rebuilds the assignments from the queue if they are outdated. Webhooks, dropped updates and polls without a consumer
-- do not update the assignments.
local known = shared > 0 and c[1]
local lease_end = ms + tonumber(lease)
-- Returns early if there is nothing to do. Each new update wakes all waiting polls of the bot, so a step without work
-- must be cheap.
local idle = not first and known and c[2] == poll and tonumber(c[1]) >= tonumber(s[1]) and idle_wait(at, name, ms)
if idle then
  renew_lease(at, name, shared, lease_end)
  return ok({}, 0, idle, redis.call('ZCARD', consumers_key), 0, 0, 0)
end
local live, dead, wait, own = {}, {}, -1, nil
if known then live, dead, wait, own = read_consumers(at, name, ms) end
if first and #live >= LIMITS.consumers_max then return refuse('too_many_consumers') end
if first and changes_mask(state_key, s[5], mask) and closed(meta_key, journal_key, run) then return refuse('journal_full') end
-- Other consumers are taking over this consumer's chats. Until they have finished, this consumer must not hold chats.
local retired = own == 0 and #live > 0
-- Refuses this step of a stream, because the consumer may now get its updates again in another order. The id `last`
-- would then no longer show which updates the client has seen.
if is_stream and not first and not c[2] and not retired then return refuse('lapsed') end

if not known then
  -- Raises `moved` to the old cursor. Consumers may have seen all updates up to this cursor, and may get these updates
  -- again.
  local moved = math.max(tonumber(c[1] or 0), tonumber(redis.call('HGET', consumption_key, 'moved') or 0))
  redis.call('UNLINK', unpack(keys))
  redis.call('HSET', consumption_key, 'cur', 0, 'moved', ('%.0f'):format(moved))
  c[3] = nil
end
renew_lease(at, not retired and name, shared, lease_end)
if retired then dead[#dead + 1] = name end
local sent, seeds = {}, {}
if not retired then
  live[#live + 1] = name
  sent = read_sent(at, name)
end
if first then
  set_mask(at, s[5], mask)
  if s[2] and shared == 0 then redis.call('SPUBLISH', channel_key, 'p') end
  if known and c[2] and c[2] ~= poll then redis.call('SPUBLISH', channel_key, 'p ' .. name) end
  local freed
  local below = tonumber(offset) <= tonumber(s[1]) + 1 and tonumber(offset) or 0
  sent, freed = confirm_sent(at, sent, below, c[3], stream_floor(c[3]))
  if freed > 0 then redis.call('HINCRBY', state_key, 'bytes', ('%d'):format(-freed)) end
  local oldest = redis.call('XRANGE', queue_key, '-', '+', 'COUNT', 1)[1]
  if oldest and ms - tonumber(oldest[2][4]) > LIMITS.queue_age_ms_max then
    local q = read_queue(state_key)
    dead_letter_excess(q, at, ms)
    redis.call('HSET', state_key, 'bytes', q.bytes)
  end
end
if not retired then redis.call('HSET', consumption_key, 'p:' .. name, poll) end
if not retired and not is_stream then redis.call('HSET', consumption_key, 'o:' .. name, offset) end

local full, rest = false, false
local function leave(rows, more)
  if not retired and #sent > 0 then redis.call('HSET', consumption_key, 's:' .. name, cmsgpack.pack(sent)) end
  if not retired and #sent == 0 then redis.call('HDEL', consumption_key, 's:' .. name) end
  for _, key in ipairs(keys) do redis.call('PEXPIRE', key, LIMITS.consumers_ttl_ms) end
  return ok(rows, more and 1 or 0, wait, #live, #sent, full and 1 or 0, rest and 1 or 0)
end

-- Does not read updates until all chats of dead consumers have new holders. Otherwise a new holder could get a later
-- update of the chat first.
local finished, budget = true, LIMITS.updates_batch_max
for _, each in ipairs(dead) do
  if budget > 0 and finished then finished, budget = take_over(at, live, seeds, each, budget) else finished = false end
end
if #dead > 0 then redis.call('SPUBLISH', channel_key, 'u') end
if not finished or retired then return leave({}, true) end
-- Returns no updates yet, because a webhook was just deleted. The receiver of the deleted webhook may still acknowledge
-- requests in flight.
if s[4] and tonumber(s[4]) > ms then return leave({}, false) end

local floor = stream_floor(c[3])
if is_stream and not floor then
  redis.call('HSET', consumption_key, 'o:' .. name, ('stream %.0f'):format(highest_seen(at, name, sent)))
end
most = tonumber(most)
if #live > 1 then share_chats(at, live, name, sent, most - #sent) end
local taken
taken, full = add_assigned(at, name, sent, most)
if not full then
  rest = assign_new(at, live, seeds, s[1])
  local added
  added, full = add_assigned(at, name, sent, most)
  taken = taken + added
end
-- A poll returns unconfirmed updates again, lowest id first. A stream sends each update once, in the order of `sent`. A
-- new stream first sends all unconfirmed updates again if its client may have seen the update `last` before the current
-- order of `sent` began.
local from = 1
if not is_stream then
  table.sort(sent, function(a, b) return tonumber(a[1]) < tonumber(b[1]) end)
elseif floor and (not first or tonumber(last) > floor) then
  from = position_of(sent, tonumber(last)) + 1
end
local rows
rows, sent = entries_of_sent(at, sent, from, most)
return leave(rows, #rows == 0 and (rest or taken > 0))

--[[
@summary Performs one step of a long poll: replaces an earlier poll, confirms updates, and reads pending updates.
@why     The newer of two polls must win, regardless of which nodes serve them. No new update may arrive between
         confirming and reading.
@repeatable Confirmed updates stay confirmed, and the poll keeps its name.
@flag    allow-oom
@key     channel  {NN}:on_bot:<bot>       CHANNEL
@arg     bot      text
@arg     poll     text    random name of this poll
@arg     first    flag    whether this is the first step of the poll
@arg     offset   text    empty, a positive update id, or -N for the last N; confirms a limited number per call
@arg     limit    int
@arg     mask     text    new mask of kinds, or empty
@ok      rows     raw     stream entries, fewer than `limit` where they are large
@ok      more     flag    more updates may have to be confirmed, and none was read: call again with the same offset
@err     webhook_active
@err     terminated
@err     terminated_by_webhook
@err     shared
]]
local s = redis.call('HMGET', state_key, 'seq', 'poll', 'hook', 'leased', 'mask')
if not s[1] then return refuse('queue_missing') end
if s[3] then return refuse(first and 'webhook_active' or 'terminated_by_webhook') end
if first then
  if redis.call('HGET', meta_key, 'run') ~= run then return refuse('stale_run') end
  local shared = shared_until(s[2])
  if shared > 0 and shared > select(2, now()) then return refuse('shared') end
  -- A change of the mask (the update kinds that the bot receives) is journaled, so it is refused if the journal is
  -- full.
  if changes_mask(state_key, s[5], mask) and closed(meta_key, journal_key, run) then return refuse('journal_full') end
  redis.call('HSET', state_key, 'poll', poll)
  set_mask({meta = meta_key, journal = journal_key, state = state_key, bot = bot}, s[5], mask)
  if s[2] and s[2] ~= poll then redis.call('SPUBLISH', channel_key, 'p') end
elseif s[2] ~= poll then
  return refuse('terminated')
end

local n = tonumber(offset)
local more = false
if n and n > 0 and n <= tonumber(s[1]) + 1 then
  more = confirm_oldest(state_key, queue_key, ('(%.0f-0'):format(n), math.huge)
elseif n and n < 0 then
  local over = redis.call('XLEN', queue_key) + n
  if over > 0 then more = confirm_oldest(state_key, queue_key, '+', over) end
end
if more then return ok({}, 1) end
-- Returns no updates yet, because a webhook was just deleted. The receiver of the deleted webhook may still acknowledge
-- requests in flight.
if s[4] then
  local _, ms = now()
  if tonumber(s[4]) > ms then return ok({}, 0) end
end
local entries = read_within(queue_key, '-', '+', tonumber(limit))
if #entries > 0 then
  local _, ms = now()
  if ms - tonumber(entries[1][2][4]) > LIMITS.queue_age_ms_max and redis.call('HGET', meta_key, 'run') == run then
    local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, channel = channel_key, bot = bot}
    local q = read_queue(state_key)
    dead_letter_excess(q, at, ms)
    redis.call('HSET', state_key, 'bytes', q.bytes)
    entries = read_within(queue_key, '-', '+', tonumber(limit))
  end
end
return ok(entries, 0)

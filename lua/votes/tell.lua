--[[
@summary Queues updates about changed and expired polls for their bots. Each poll is reported at most once a second.
@why     The due time and the update must change together. A poll therefore stays due if a node dies, and only one of
         several nodes reports the poll.
@repeatable A poll whose update was queued is no longer due.
@key     due      {NN}:polls_due  ZSET     poll -> ms
@arg     token    text
@arg     limit    int
@args    gone     text    polls that Postgres does not have
@ok      more     flag    more polls are due
@ok      missing  texts   polls to read from Postgres first, each followed by its ticket
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end
for _, poll in ipairs(gone) do redis.call('ZREM', due_key, poll) end
local seconds, ms = now()
local missing = {}
local polls = redis.call('ZRANGEBYSCORE', due_key, '-inf', ('%.0f'):format(ms), 'LIMIT', 0, limit)
for _, poll in ipairs(polls) do
  local key = poll_key(poll)
  local p = read_post(key)
  if not p then
    -- Postpones a poll that needs records from Postgres. Otherwise the poll would be retried constantly while Postgres
    -- is unreachable.
    redis.call('ZADD', due_key, 'XX', ('%.0f'):format(ms + LIMITS.counts_interval_ms_min), poll)
    for _, value in ipairs({poll, leave_ticket(key .. ':ticket', token, inc)}) do missing[#missing + 1] = value end
  else
    redis.call('ZREM', due_key, poll)
    if not p.deleted then
      tell_poll(meta_key, outbox_key, p, next_version(meta_key), ms, poll)
      local ends = tonumber(get_field(p, 'e')) * 1000
      if ends > 0 and not is_closed(p, seconds) then redis.call('ZADD', due_key, ('%.0f'):format(ends), poll) end
    end
  end
end
return ok(#polls == tonumber(limit) and 1 or 0, missing)

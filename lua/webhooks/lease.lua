--[[
@summary Acquires the lease on a webhook bot, and reads the first updates to deliver.
@why     Only one of two concurrent workers may get the lease. The fence distinguishes later holders from earlier ones.
@flag    allow-oom
@arg     bot     text
@arg     limit   int    maximum of updates and of chats to read
@ok      fence   text
@ok      hook    int    version of the webhook settings
@ok      since   text   settings version that ended polling
@ok      now     int    time of the reply in ms, by the clock of Redis
@ok      again   raw    chats due for a retry: chat, tries, stream entries
@ok      fresh   raw    stream entries of other chats
@ok      after   text   last queue id read
@ok      safe    text   queue id up to which every update is parked or removed
@ok      more    flag   the queue may hold more
@ok      wait    int    time in ms until the next parked chat is due; -1 for none
@ok      probes  int    failed probes, if the receiver is down
@ok      gone    int?   time in ms since when the receiver has answered only 410
@ok      dropped int    queue id up to which updates were dropped on request, 0 for none
@err     no_webhook
@err     leased
@err     held
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local s = redis.call('HMGET', state_key, 'hook', 'since', 'leased', 'hold', 'cur', 'probes', 'gone', 'dropped_to', 'fence')
if not s[1] then return refuse('no_webhook') end
local seconds, ms = now()
if tonumber(s[3] or 0) > ms then return refuse('leased') end
if tonumber(s[4] or 0) > ms then return refuse('held') end

local fence = next_version(meta_key)
local at = {state = state_key, queue = queue_key, parked = parked_key, retries = retries_key, attempts = attempts_key,
  due = due_key, bot = bot}
local until_ms = ('%.0f'):format(ms + LIMITS.webhook_lease_ms)
redis.call('HSET', state_key, 'fence', fence, 'leased', until_ms)
redis.call('HDEL', state_key, 'rung', 'hold')
-- Records that the previous worker died: its lease still exists, but a worker that stops normally removes its lease.
if s[3] then redis.call('HSET', state_key, 'strayed', seconds) end
redis.call('ZADD', due_key, until_ms, bot)
local probes, safe = tonumber(s[6] or 0), s[5] or '0'
-- This Redis may have lost the list of parked updates. A read from the cursor would miss parked updates, so the worker
-- reads the queue from its first entry.
if incarnation_of(s[9] or 0) ~= inc then safe = '0' end
-- If the receiver was down, sends the receiver only one update, as a probe.
local most = probes > 0 and 1 or tonumber(limit)
local again = take_due(at, ms, most)
local retry = next_retry(at)
local fresh, after, more = take_new(at, safe, probes > 0 and 1 - #again or most, retry)
return ok(fence, s[1], s[2], ms, again, fresh, after, safe, more and 1 or 0, retry and math.max(0, retry - ms) or -1, probes,
  s[7], s[8] or '0')

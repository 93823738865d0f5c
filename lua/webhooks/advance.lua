--[[
@summary Performs one step of a webhook delivery.
         The step acknowledges updates, parks failed chats, renews the lease, and reads the next updates.
@why     No other worker may take the updates that this worker acknowledges or parks. A worker with an old fence must
         change nothing. A fence of another incarnation also counts as old: Redis may have lost the worker's last
         reports, so the worker's cursor may be too far ahead.
@repeatable Acknowledging and parking twice changes nothing; updates that were read are returned again after a lease.
@flag    allow-oom
@arg     bot     text
@arg     fence   text
@arg     since   text    settings version that ended polling, from the lease
@arg     after   text    queue id after which to read
@arg     safe    text    queue id up to which every update is parked or removed
@arg     leave   text    stay; idle: release the lease if nothing is due soon; now: read nothing and release
@arg     report  bytes   msgpack map: acked (id, bytes, chat if it was parked, alternating), repeated (acked may contain
                         updates of a former report), failed (arrays of chat, delay in ms, tries, ids), chats and
                         updates to read, error, gone (set, clear or empty), hold (ms), probes, hook (version of the
                         settings in use)
@ok      hook    int     version of the settings; 0 when the webhook was deleted: only acknowledgements were processed
@ok      now     int     time of the reply in ms, by the clock of Redis
@ok      again   raw     chats due for a retry: chat, tries, stream entries
@ok      fresh   raw     stream entries of other chats
@ok      after   text    last queue id read
@ok      more    flag    the queue may hold more
@ok      wait    int     ms until the next parked chat is due, -1 for none; after the webhook was deleted, how long the
                         receiver may still acknowledge requests in flight
@ok      gone    int?    time in ms since when the receiver has answered only 410
@ok      left    flag    the lease was released
@ok      wake    flag    the lease was released although there is more to deliver
@ok      dropped int     queue id up to which updates were dropped on request, 0 for none
@err     fenced
]]
local s = redis.call('HMGET', state_key, 'fence', 'hook', 'since', 'bytes', 'gone', 'leased', 'hook_set', 'dropped_to')
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if s[1] ~= fence or incarnation_of(fence) ~= inc then return refuse('fenced') end
local seconds, ms = now()
local r = cmsgpack.unpack(report)
local at = {state = state_key, queue = queue_key, parked = parked_key, retries = retries_key, attempts = attempts_key,
  due = due_key, bot = bot}

local bytes, dropped = tonumber(s[4]) - remove_acked(at, r.acked, r.repeated), s[8] or '0'
for i = 1, #r.acked, 3 do
  local id, chat = r.acked[i], r.acked[i + 2]
  if chat ~= '' and unpark(at, chat, id) then settle_chat(at, chat, ms) end
end
if not s[2] or s[3] ~= since then
  redis.call('HSET', state_key, 'bytes', bytes)
  -- Does not renew the lease. Polls and the worker of a new webhook wait until this worker has ended its requests and
  -- released the lease, or until the lease ends.
  local wait = math.max(0, math.min(LIMITS.webhook_grace_ms, tonumber(s[6] or 0) - ms))
  if leave == 'stay' then return ok(0, ms, {}, {}, after, 0, wait, false, 0, 0, dropped) end
  leave_bot(at, s[2] and ms or nil)
  return ok(0, ms, {}, {}, after, 0, wait, false, 1, s[2] and 1 or 0, dropped)
end

for _, failed in ipairs(r.failed) do
  local ids = {}
  for i = 4, #failed do ids[#ids + 1] = failed[i] end
  park(at, failed[1], ms + failed[2], failed[3], ids)
end
-- Ignores a failure of the previous receiver, because it says nothing about the current receiver.
local present = tonumber(r.hook) >= tonumber(s[7] or 0)
if r.error ~= '' and present then redis.call('HSET', state_key, 'err_at', seconds, 'err', r.error) end
local gone = s[5]
if r.gone == 'clear' and gone then
  redis.call('HDEL', state_key, 'gone')
  gone = false
elseif r.gone == 'set' and not gone and present then
  gone = ('%.0f'):format(ms)
  redis.call('HSET', state_key, 'gone', gone)
end

local again, fresh, more, retry = {}, {}, false, next_retry(at)
if leave ~= 'now' then
  if retry and retry <= ms then again, retry = take_due(at, ms, r.chats), next_retry(at) end
  fresh, after, more = take_new(at, after, r.updates, retry)
end
-- A worker that releases its lease has no requests in flight, so all updates that it read are acknowledged or parked.
if leave == 'idle' and #fresh == 0 then safe = after end
local idle = #again == 0 and #fresh == 0 and not more and not (retry and retry - ms <= LIMITS.webhook_linger_ms)
if leave == 'now' or (leave == 'idle' and idle) then
  local due = retry
  -- If updates are still unread, makes the bot due now. Otherwise no worker would notice these updates.
  local unread = leave == 'now' or r.updates == 0
  if unread and #redis.call('XRANGE', queue_key, '(' .. safe .. '-0', '+', 'COUNT', 1) > 0 then due = ms end
  local hold = present and r.hold or 0
  if due and hold > 0 then due = math.max(due, ms + hold) end
  redis.call('HSET', state_key, 'bytes', bytes, 'cur', safe)
  leave_bot(at, due)
  if hold > 0 then redis.call('HSET', state_key, 'hold', ('%.0f'):format(ms + hold)) end
  if present then redis.call('HSET', state_key, 'probes', r.probes) end
  return ok(s[2], ms, again, fresh, after, 0, -1, gone, 1, due and due <= ms and 1 or 0, dropped)
end
local until_ms = ('%.0f'):format(ms + LIMITS.webhook_lease_ms)
redis.call('HSET', state_key, 'bytes', bytes, 'cur', safe, 'leased', until_ms)
redis.call('ZADD', due_key, until_ms, bot)
return ok(s[2], ms, again, fresh, after, more and 1 or 0, retry and math.max(0, retry - ms) or -1, gone, 0, 0, dropped)

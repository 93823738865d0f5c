--[[
@summary Switches a bot between polling and webhook according to its settings. Drops the bot's queue if requested.
@why     All pending updates must switch at the same moment. Versions order concurrent calls and make repeated calls
         harmless.
@repeatable Each version switches the bot once and drops the queue once.
@flag    allow-oom
@key     channel   {NN}:on_bot:<bot>       CHANNEL
@key     consumption  {NN}:consumption:<bot>  HASH
@arg     bot      text
@arg     version  text   version of the settings and signing secrets
@arg     set      text   version at which the webhook was last set or deleted; after it only signing secrets may have
                         changed
@arg     active   flag   a webhook is set
@arg     drop     text   settings version whose call requests to drop the queue, or empty
@arg     mask     text   new mask of kinds, or empty
@ok      wake     flag   the bot's worker must be woken
@ok      more     flag   more chats must be retried now, by `webhooks/hasten`
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local s = redis.call('HMGET', state_key, 'seq', 'hook', 'hook_version', 'dropped', 'hook_set', 'mask')
if not s[1] then return refuse('queue_missing') end
local _, ms = now()
set_mask({meta = meta_key, journal = journal_key, state = state_key, bot = bot}, s[6], mask)
if drop ~= '' and tonumber(drop) > tonumber(s[4] or 0) then
  redis.call('UNLINK', queue_key, parked_key, retries_key, attempts_key, consumption_key)
  redis.call('HSET', state_key, 'bytes', 0, 'dropped', drop, 'dropped_to', s[1])
end
if tonumber(version) <= tonumber(s[3] or 0) then return ok(0, 0) end

redis.call('HSET', state_key, 'hook_version', version)
local hooked = s[2] and true or false
if tonumber(set) <= tonumber(s[5] or s[3] or 0) and active == hooked then
  -- The webhook itself has not changed, so the worker only reloads the settings. Failed chats keep their retry times.
  if hooked then
    redis.call('HSET', state_key, 'hook', version)
    redis.call('SPUBLISH', channel_key, 'w')
  end
  return ok(0, 0)
end
redis.call('HSET', state_key, 'hook_set', set)
redis.call('HDEL', state_key, 'err_at', 'err', 'gone', 'hold', 'probes', 'strayed')
if not active then
  redis.call('HDEL', state_key, 'hook', 'since', 'cur', 'rung')
  redis.call('UNLINK', parked_key, retries_key, attempts_key)
  redis.call('ZREM', due_key, bot)
  -- Keeps the lease. Polls return no updates until the worker has ended its requests and released the lease, or until
  -- the lease ends. The lease is not shortened, because the worker might learn too late that its lease ends earlier.
  redis.call('SPUBLISH', channel_key, 'w')
  return ok(0, 0)
end
redis.call('HSET', state_key, 'hook', version)
local more = false
if s[2] then
  -- Makes failed updates due now, because a new receiver may accept updates that the previous receiver rejected.
  more = retry_chats_now(retries_key, ms, ms)
  redis.call('UNLINK', attempts_key)
else
  redis.call('HSET', state_key, 'since', version, 'cur', 0)
end
redis.call('SPUBLISH', channel_key, 'w')
local at = {state = state_key, due = due_key, bot = bot}
local q = read_queue(state_key)
if q.leased > ms then
  -- The lease belongs to the worker of this webhook, or to the worker of a webhook that was just deleted. The bot
  -- becomes due when the lease ends.
  redis.call('ZADD', due_key, q.leased, bot)
elseif redis.call('XLEN', queue_key) > 0 then
  fall_due(q, at, ms)
end
return ok(at.wake and 1 or 0, more and 1 or 0)

--[[
@summary Stores a person's inline query for a short time, and queues it for the bot.
@why     The bot may answer as soon as it receives the update, so the stored query must already exist.
@derived query    {NN}:inline_query:<id>       STRING
@key     channel  {NN}:on_bot:<bot>            CHANNEL
@arg     ask      bytes   msgpack array of text: bot, user, query, digest for this person, digest for everybody,
                          partition as three digits, version of the write policy for which the person was checked
@arg     from     bytes   the person's profile
@arg     extra    bytes   further fields of the update
@ok      id       text
@ok      wake     int     queues to wake, one bit for each slot
@err     access_missing  incarnation int
@err     unchecked  version text
@err     not_asked
@err     behind
]]
local bot, user, query, own_digest, digest, partition, checked = unpack(cmsgpack.unpack(ask))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local done = redis.call('GET', request_key)
if done then return ok(done, 0) end
local q = read_queue(state_key)
if not q then return refuse('queue_missing') end
if q.access_inc ~= inc then return refuse('access_missing', inc) end
-- Only the caller can check whether the bot's write policy admits the person. The caller must have checked the current
-- version of the policy.
if q.policy ~= 'all' and q.access ~= checked then return refuse('unchecked', q.access) end
local chat = bot .. '.' .. user
local slot = bit.band(q.mask, INLINE_QUERY_BIT) ~= 0 and 0 or nil
if q.mask == 0 then slot = slot_for(state_key, bot, chat, INLINE_QUERY_BIT) end
if not slot then return refuse('not_asked') end
if why then return refuse('journal_full') end
-- Finds the queue for the query. If the bot is slow and this queue is long, refuses the query, because queries must not
-- push other updates out of the queue.
local entered, bytes = queue_key, q.bytes
if slot > 0 then
  entered, bytes = route_key(queue_key, bot, slot), read_queue(route_key(state_key, bot, slot)).bytes
end
local behind = redis.call('XLEN', entered) >= LIMITS.inline_pending_max or bytes >= LIMITS.inline_pending_bytes_max
if behind then return refuse('behind') end

local _, ms = now()
local version = next_version(meta_key)
local id = version .. partition
redis.call('SET', query_key(id), cmsgpack.pack({bot, user, query, own_digest, digest}), 'PX',
  LIMITS.inline_query_age_ms_max)
local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, channel = channel_key, bot = bot,
  due = due_key}
push_update(q, at, version, ms, INLINE_QUERY_BIT, 'inline_query', chat, id, dated(ms, version), from, '', '',
  extra)
remember(request_key, id)
return ok(id, at.wake or 0)

--[[
@summary Queues an update that tells a bot which inline result a person has chosen.
@repeatable The request is remembered, so a second run adds no update.
@key     channel  {NN}:on_bot:<bot>  CHANNEL
@arg     bot      text
@arg     from     bytes   the person's profile
@arg     user     text
@arg     extra    bytes   further fields of the update
@ok      wake     int     queues to wake, one bit for each slot
]]
local why = closed(meta_key, journal_key, run)
if why then return refuse(why) end
if redis.call('EXISTS', request_key) == 1 then return ok(0) end
local q = read_queue(state_key)
if not q then return refuse('queue_missing') end

local _, ms = now()
local version = next_version(meta_key)
local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, channel = channel_key, bot = bot,
  due = due_key}
push_update(q, at, version, ms, CHOSEN_RESULT_BIT, 'chosen_inline_result', bot .. '.' .. user, version, dated(ms, version),
  from, '', '', extra)
remember(request_key, 1)
return ok(at.wake or 0)

--[[
@summary Pins a message of a direct chat in place of the pinned message. Adds a service message about the new pin.
@why     Exactly one of several concurrent pins wins, and every change has its service message and update.
@combine 8
@key     message         {NN}:msg:<bot>.<user>:<message_id>      STRING
@arg     pin      bytes   msgpack array: chat, message id, id of the pinning side
@arg     tail     bytes   the service message without version and date
@arg     from     bytes   the pinning side's profile
@arg     notify   text    1 to notify viewers, or empty
@ok      wake     int     queues to wake, one bit for each slot
]]
local chat, message_id, who = unpack(cmsgpack.unpack(pin))
local bot = chat:match('^%d+')
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if remembered(request_key) then return ok(0) end
if c.kind == 'blocked' then return refuse('blocked') end
local q = read_queue(queue_state_key)
if not q then return refuse('queue_missing') end
if who ~= bot then
  local no = refused_writer(q, chat_key, inc)
  if no then return no end
end
if tonumber(message_id) > c.seq then return refuse('not_found') end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token, inc)) end
local refusal = unpinnable(record)
if refusal then return refuse(refusal) end
if c.pin == message_id then
  remember(request_key, 1)
  return ok(0)
end
if why then return refuse('journal_full') end

local seconds, ms = now()
local at = {meta = meta_key, journal = journal_key, chat = chat_key, changes = changes_key, channel = channel_key,
  message_prefix = sibling_prefix}
local version, pinned = unpack(next_versions(meta_key, 2))
local id, service = append_message(at, c, chat, seconds, tail, version)
set_pin(at, c, pinned, chat, message_id, notify)
-- A bot also receives updates about its own pins. In such an update the bot is the sender, so `peer` is the chat's
-- user.
local own = {meta = meta_key, journal = journal_key, state = queue_state_key, queue = queue_key, channel = bot_channel_key,
  due = due_key, bot = bot}
push_update(q, own, version, ms, 1, 'message', chat, id, service, from, who == bot and c.profile or '', record, '')
remember(request_key, 1)
return ok(own.wake or 0)

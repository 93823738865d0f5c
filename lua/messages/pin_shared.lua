--[[
@summary Pins a message of a group or channel in place of the pinned message. Adds a service message about the new pin.
@why     Exactly one of several concurrent pins wins, and the right to pin must be checked in the same step.
@combine 8
@key     message         {NN}:msg:<chat>:<message_id>      STRING
@arg     pin      bytes   msgpack array: chat, message id, id of the pinning member
@arg     tail     bytes   the service message without version and date
@arg     from     bytes   the pinning member's profile
@arg     notify   text    1 to notify viewers, or empty
@ok      forward  flag    the outbox has new entries
@err     chat_closed
]]
local chat, message_id, who = unpack(cmsgpack.unpack(pin))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if remembered(request_key) then return ok(0) end
local member = read_member(member_key, inc)
if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
if not is_member(member) then return refuse('not_member', c.kind) end
if c.kind == 'closed' then return refuse('chat_closed') end
if not may_pin(member, c) then return refuse('not_allowed') end
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
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local seconds, ms = now()
local at = {meta = meta_key, journal = journal_key, chat = chat_key, changes = changes_key, channel = channel_key,
  message_prefix = sibling_prefix}
local version, pinned = unpack(next_versions(meta_key, 2))
local id, service = append_message(at, c, chat, seconds, tail, version)
set_pin(at, c, pinned, chat, message_id, notify)
local kind = is_channel(c) and 'channel_post' or 'message'
-- The bot that pinned the message also receives the update about the service message.
local forward = post_update(meta_key, outbox_key, version, ms, receiving_bots(c, who), '', kind, chat, id, service, from, c.profile, record, '')
remember(request_key, 1)
return ok(forward and 1 or 0)

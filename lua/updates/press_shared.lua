--[[
@summary Handles a press of an inline button in a group. Queues a callback query for the bot that sent the message.
@why     The membership and the button must still exist at the moment when the query enters the outbox.
@arg     press      bytes   msgpack array: chat, message id, user, data, partition as three digits,
                           whether the press grants an edit
@arg     from       bytes   the user's profile
@arg     extra      bytes   further fields of the update
@ok      query_id   text
@ok      forward    flag    the outbox has new entries
@err     inline     bot text
]]
local chat, message_id, user, data, partition, grants = unpack(cmsgpack.unpack(press))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local done = redis.call('GET', request_key)
if done then return ok(done, 0) end
local member = read_member(member_key, inc)
if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
if not is_member(member) then return refuse('not_member', c.kind) end
if tonumber(message_id) > c.seq then return refuse('not_found') end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token, inc)) end
local header, start = read_header(record)
if header[6] == KIND_DELETED then return refuse('not_found') end
local _, markup, origin = read_segments(record, header, start)
-- If a person sent the message as an inline result, the caller must use updates/press_inline instead.
if is_inline(header) then return refuse('inline', via_bot(header, origin)) end
local bot = ('%.0f'):format(header[5])
local here = (',' .. c.bots .. ','):find(',' .. bot .. ',', 1, true)
if not here or not has_button(markup, data) then return refuse('no_button') end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local _, ms = now()
local version = next_version(meta_key)
local id = open_query(query_prefix, version, partition, chat, user, bot)
if grants then grant_edit(granted_key) end
local forward = post_update(meta_key, outbox_key, version, ms, bot, '', 'callback_query', chat, id, record, from, c.profile, '', extra)
remember(request_key, id)
return ok(id, forward and 1 or 0)

--[[
@summary Handles a press of a button below a person's inline result. Queues a callback query for the result's bot.
@why     The button must still exist at the moment when the query enters the outbox.
@arg     press      bytes   msgpack array: chat, message id, user, data, partition as three digits,
                           whether the press grants an edit
@arg     from       bytes   the user's profile
@arg     extra      bytes   further fields of the update
@ok      query_id   text
@ok      forward    flag    the outbox has new entries
]]
local chat, message_id, user, data, partition, grants = unpack(cmsgpack.unpack(press))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local done = redis.call('GET', request_key)
if done then return ok(done, 0) end
if chat:find('.', 1, true) then
  if c.kind == 'blocked' then return refuse('blocked') end
else
  local member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
end
if tonumber(message_id) > c.seq then return refuse('not_found') end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token, inc)) end
local header, start = read_header(record)
if header[6] == KIND_DELETED then return refuse('not_found') end
local _, markup, origin = read_segments(record, header, start)
local bot = via_bot(header, origin)
if not bot or not has_button(markup, data) then return refuse('no_button') end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local _, ms = now()
local version = next_version(meta_key)
local id = open_query(query_prefix, version, partition, chat, user, bot)
if grants then grant_edit(granted_key) end
local forward = post_update(meta_key, outbox_key, version, ms, bot, '', 'callback_query', chat, id, dated(ms, version), from, '',
  '', extra)
remember(request_key, id)
return ok(id, forward and 1 or 0)

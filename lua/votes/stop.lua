--[[
@summary Closes a poll and replaces the keyboard of its message.
@why     Only one of two simultaneous calls may close the poll. Viewers must see the closed poll and the new keyboard
         together.
@key     due       {NN}:polls_due  ZSET     poll -> ms
@arg     stop      bytes   msgpack array of text: chat, message id, bot, poll, place
@arg     direct    flag    the chat is a direct chat
@arg     markup    bytes   the new keyboard, or empty
@arg     from      bytes   the bot's profile
@ok      results   bytes   msgpack array: voters, 1 if the poll is closed, votes for each option
@ok      forward   flag    the outbox has new entries
@err     not_found
]]
local chat, message_id, bot, poll, place = unpack(cmsgpack.unpack(stop))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local p = read_post(poll_key)
if not p then return refuse('poll_missing', leave_ticket(poll_ticket_key, token, inc)) end
if p.deleted then return refuse('poll_gone') end
if remembered(request_key) then return ok(poll_results(p), 0) end
if not direct then
  local member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token, inc)) end
local header, segments_at = read_header(record)
if header[6] == KIND_DELETED then return refuse('not_found') end
local seconds, ms = now()
if is_closed(p, seconds) then return refuse('poll_closed') end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local edited_at, told = unpack(next_versions(meta_key, 2))
local at = {meta = meta_key, journal = journal_key}
local content, before, origin = read_segments(record, header, segments_at)
header[2] = tonumber(edited_at)
if markup ~= before then header[4] = ms end
local edited = write_record(header, content, markup, origin)
redis.call('SET', message_key, edited)
redis.call('DEL', message_ticket_key)
journal_image(at, edited_at, 'msg:' .. chat .. ':' .. message_id, edited)
touch_chat(chat_key, c, edited_at)
log_change(changes_key, channel_key, edited_at, c.changed, 'e', message_id)
if markup ~= before and is_channel(c) then
  post_update(meta_key, outbox_key, edited_at, ms, c.bots, bot, 'edited_channel_post', chat, message_id, edited, from, c.profile,
    '', '')
end
set_field(p, 'z', '1')
set_field(p, 'v', told)
write_post(poll_key, p)
redis.call('DEL', poll_ticket_key)
local results = poll_results(p)
journal_image(at, told, 'results:' .. place, results, poll_key)
redis.call('ZREM', due_key, poll)
tell_poll(meta_key, outbox_key, p, told, ms, poll)
remember(request_key, '1')
return ok(results, 1)

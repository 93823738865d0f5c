--[[
@summary Replaces the text, caption, media, live location or keyboard of a message in a group or a channel.
@why     The age, the kind and the last edit are checked in the record that the edit replaces.
@combine 16
@arg     edit     bytes   msgpack array: chat, message id, editor, what (text, caption, media, location or markup),
                         whether the editor is the bot of an inline message, mode (absent, coalesce or due),
                         the editor's profile (JSON) and its owner if the mode is coalesce, or the token of the pending edit if it is due
@arg     content  bytes   empty for an edit of the keyboard, and to stop a live location
@arg     markup   bytes
@arg     from     bytes   the editor's profile for the bots' updates
@ok      record   bytes
@ok      peer     bytes   the chat's profile
@ok      reply    bytes   record of the replied message, empty if it is not in Redis
@ok      forward  flag    the outbox has new entries
@ok      wait_ms  int?    time until a coalesced edit is due; null if it is applied
@err     not_pending
@err     chat_closed
]]
local chat, message_id, editor, what, by_way, mode, detail, owner = unpack(cmsgpack.unpack(edit))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
-- An edit that changes only the keyboard keeps the text of a pending edit. Any other edit without a `mode` replaces the
-- text of a pending edit.
local waiting = (mode or what == 'markup' and redis.call('EXISTS', pending_key) == 1)
  and pending_edit_of(pending_key, edits_due_key, chat .. ':' .. message_id)
local done, made = remembered(request_key)
-- A durable call has no `mode`. If the first attempt of a durable call left a pending edit, the repeated call must not
-- succeed before this edit is stored.
local unsure = made and not mode and done:sub(-#PENDING) == PENDING
if made and not unsure then
  local wait = mode and waiting.wait(made, select(2, now()))
  return ok(made, c.profile, replied_record(made, sibling_prefix), 0, wait)
end
if tonumber(message_id) > c.seq then return refuse('not_found') end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token, inc)) end
-- If the version of the message has changed since the first attempt, the pending edit was applied or became outdated.
-- Otherwise the script applies the edit now.
if unsure and read_header(record)[2] ~= read_header(made)[2] then
  return ok(made, c.profile, replied_record(made, sibling_prefix), 0)
end
if done and not unsure then
  if read_header(record)[6] == KIND_DELETED then return refuse('not_found') end
  if not mode then return ok(record, c.profile, replied_record(record, sibling_prefix), 0) end
  local _, ms = now()
  local shown = waiting.apply_to(record, waiting.read(record), ms)
  return ok(shown, c.profile, replied_record(shown, sibling_prefix), 0, waiting.wait(shown, ms))
end
local pending = waiting and waiting.read(record, mode == 'due' and detail)
if mode == 'due' then
  if not pending then return refuse('not_pending') end
  content, markup, pending = pending.content, pending.markup, nil
end
-- If a message was sent inline via a bot, this bot may edit it without being a member.
local member = not by_way and read_member(member_key, inc)
if not by_way then
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
  if c.kind == 'closed' then return refuse('chat_closed') end
end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end
local kind_refused = member and forbidden_media(member, c, what, content)
if kind_refused then return refuse('not_permitted', kind_refused) end
local _, ms = now()
local edited, version = edited_record(record, meta_key, ms, editor, member and has_right(member, 'can_edit_messages'), by_way, what,
  content, markup, granted_key, pending)
if not edited and version == 'too_often' and mode == 'coalesce' then
  local shown, wait = waiting.replace(record, ms,
    {token = token, editor = editor, content = content, markup = markup, profile = detail, by_way = by_way,
      owner = owner})
  if not shown then return refuse('too_often') end
  remember(request_key, chat .. ' ' .. message_id .. PENDING, shown)
  return ok(shown, c.profile, replied_record(shown, sibling_prefix), 0, wait)
end
if not edited then return refuse(version) end

redis.call('SET', message_key, edited)
redis.call('DEL', message_ticket_key)
if mode or pending then waiting.drop() end
journal_image({meta = meta_key, journal = journal_key}, version, 'msg:' .. chat .. ':' .. message_id, edited)
touch_chat(chat_key, c, version)
log_change(changes_key, channel_key, version, c.changed, 'e', message_id)
local reply = replied_record(edited, sibling_prefix)
local kind = is_channel(c) and 'edited_channel_post' or 'edited_message'
local bots = receiving_bots(c, ('%.0f'):format(read_header(edited)[5]))
local forward = post_update(meta_key, outbox_key, version, ms, bots, editor, kind, chat, message_id, edited, from, c.profile, reply, '')
remember(request_key, chat .. ' ' .. message_id, edited)
return ok(edited, c.profile, reply, forward and 1 or 0)

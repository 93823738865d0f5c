--[[
@summary Replaces the text, caption, media or keyboard of a message in a group or a channel.
@why     Age, kind, changes and the limit of one edit a second are checked against the record that is replaced.
@include partition
@include request
@include clock
@include message
@include chat
@include changes
@include control
@include outbox
@include edit
@key     meta            {NN}:meta                               HASH
@key     journal         {NN}:journal                            STREAM
@key     chat            {NN}:chat:<chat>                  HASH
@key     ticket          {NN}:chat:<chat>:ticket           STRING
@key     message         {NN}:msg:<chat>:<message_id>      STRING
@key     message_ticket  {NN}:msg:<chat>:<message_id>:ticket STRING
@key     request         {NN}:req:<id>                           STRING
@key     changes         {NN}:changes:<chat>               STREAM
@key     channel         {NN}:on_chat:<chat>               CHANNEL
@key     outbox          {NN}:outbox                             STREAM
@key     member          {NN}:member:<chat>:<editor>             STRING
@key     member_ticket   {NN}:member:<chat>:<editor>:ticket      STRING
@derived sibling         {NN}:msg:<chat>:<message_id>      STRING
@arg     run      text
@arg     edit     bytes   msgpack array: chat, message id, editor, what (text, caption, media or markup), fill ticket
@arg     content  bytes
@arg     markup   bytes
@arg     from     bytes   the editor's profile for the bots' updates
@ok      record   bytes
@ok      peer     bytes   the chat's profile
@ok      reply    bytes   record of the replied message, empty if it is not in Redis
@ok      forward  flag    the outbox has new entries
@err     stale_run
@err     journal_full
@err     chat_missing     ticket text
@err     message_missing  ticket text
@err     member_missing   ticket text
@err     not_member       kind text
@err     outbox_full
@err     not_found
@err     cant_be_edited
@err     no_text
@err     no_caption
@err     no_media
@err     not_modified
@err     too_often
]]
local chat, message_id, editor, what, token = unpack(cmsgpack.unpack(edit))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token)) end
local done, made = remembered(request_key)
if made then return ok(made, c.profile, replied_record(made, sibling_prefix), 0) end
if tonumber(message_id) > c.seq then return refuse('not_found') end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token)) end
if done then
  if read_header(record)[6] == KIND_DELETED then return refuse('not_found') end
  return ok(record, c.profile, replied_record(record, sibling_prefix), 0)
end
local member = read_member(member_key, inc)
if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token)) end
if not is_member(member) then return refuse('not_member', c.kind) end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end
local _, ms = now()
local version
local edited, refusal = edited_record(record, function()
  version = next_version(meta_key)
  return version
end, ms, editor, has_right(member, 'can_edit_messages'), what, content, markup)
if not edited then return refuse(refusal) end

redis.call('SET', message_key, edited)
redis.call('DEL', message_ticket_key)
journal_image({meta = meta_key, journal = journal_key}, version, 'msg:' .. chat .. ':' .. message_id, edited)
touch_chat(chat_key, c, version)
log_change(changes_key, channel_key, version, c.changed, 'e', message_id)
local reply = replied_record(edited, sibling_prefix)
local kind = is_channel(c) and 'edited_channel_post' or 'edited_message'
local bots = receiving_bots(c, ('%.0f'):format(read_header(edited)[5]))
local forward = post_update(meta_key, outbox_key, version, ms, bots, editor, kind, chat, message_id, edited, from, c.profile, reply, '')
remember(request_key, chat .. ' ' .. message_id, edited)
return ok(edited, c.profile, reply, forward and 1 or 0)

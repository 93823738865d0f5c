--[[
@summary Replaces the text, caption, media or keyboard of a message in a direct chat.
@why     Age, kind, changes and the limit of one edit a second are checked against the record that is replaced.
@include partition
@include request
@include clock
@include message
@include chat
@include changes
@include stream
@include queue
@include access
@include edit
@key     meta            {NN}:meta                               HASH
@key     journal         {NN}:journal                            STREAM
@key     chat            {NN}:chat:<bot>.<user>                  HASH
@key     ticket          {NN}:chat:<bot>.<user>:ticket           STRING
@key     message         {NN}:msg:<bot>.<user>:<message_id>      STRING
@key     message_ticket  {NN}:msg:<bot>.<user>:<message_id>:ticket STRING
@key     request         {NN}:req:<id>                           STRING
@key     changes         {NN}:changes:<bot>.<user>               STREAM
@key     channel         {NN}:on_chat:<bot>.<user>               CHANNEL
@key     queue_state     {NN}:queue_state:<bot>                  HASH
@key     queue           {NN}:queue:<bot>                        STREAM
@key     bot_channel     {NN}:on_bot:<bot>                       CHANNEL
@key     due             {NN}:webhooks_due                       ZSET
@derived sibling         {NN}:msg:<bot>.<user>:<message_id>      STRING
@arg     run      text
@arg     edit     bytes   msgpack array: chat, message id, editor, what (text, caption, media or markup), fill ticket
@arg     content  bytes
@arg     markup   bytes
@arg     from     bytes   the editor's profile for the bot's update; empty when the bot edits
@ok      record   bytes
@ok      peer     bytes   the user's profile
@ok      reply    bytes   record of the replied message, empty if it is not in Redis
@ok      wake     flag    the bot's worker must be woken
@err     stale_run
@err     journal_full
@err     chat_missing     ticket text
@err     message_missing  ticket text
@err     queue_missing
@err     access_missing  incarnation int
@err     cant_write
@err     blocked
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
local q, wake
if from ~= '' then
  if c.kind == 'blocked' then return refuse('blocked') end
  q = read_queue(queue_state_key)
  if not q then return refuse('queue_missing') end
  local no = refused_writer(q, chat_key, inc)
  if no then return no end
end
if why then return refuse('journal_full') end
local _, ms = now()
local version
local edited, refusal = edited_record(record, function()
  version = next_version(meta_key)
  return version
end, ms, editor, false, what, content, markup)
if not edited then return refuse(refusal) end

redis.call('SET', message_key, edited)
redis.call('DEL', message_ticket_key)
journal_image({meta = meta_key, journal = journal_key}, version, 'msg:' .. chat .. ':' .. message_id, edited)
touch_chat(chat_key, c, version)
log_change(changes_key, channel_key, version, c.changed, 'e', message_id)
local reply = replied_record(edited, sibling_prefix)
if q then
  local at = {meta = meta_key, journal = journal_key, state = queue_state_key, queue = queue_key, channel = bot_channel_key,
    due = due_key, bot = chat:match('^%d+')}
  push_update(q, at, version, ms, 2, 'edited_message', chat, message_id, edited, from, '', reply, '')
  wake = at.wake
end
remember(request_key, chat .. ' ' .. message_id, edited)
return ok(edited, c.profile, reply, wake and 1 or 0)

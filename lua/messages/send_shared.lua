--[[
@summary Sends a message to a group or channel; in a channel it becomes a post.
@why     The membership check, sequence, message, journal and the updates for the group's bots are one step.
@include partition
@include request
@include clock
@include message
@include chat
@include changes
@include append
@include reply
@include control
@include outbox
@key     meta           {NN}:meta                       HASH
@key     journal        {NN}:journal                    STREAM
@key     chat           {NN}:chat:<chat>                HASH
@key     ticket         {NN}:chat:<chat>:ticket         STRING
@key     member         {NN}:member:<chat>:<sender>     STRING
@key     member_ticket  {NN}:member:<chat>:<sender>:ticket STRING
@key     request        {NN}:req:<id>                   STRING
@key     changes        {NN}:changes:<chat>             STREAM
@key     channel        {NN}:on_chat:<chat>             CHANNEL
@key     outbox         {NN}:outbox                     STREAM
@derived message        {NN}:msg:<chat>:<message_id>    STRING
@derived post           {NN}:post:<post>                HASH
@arg     run       text
@arg     chat      text
@arg     tail      bytes   the record without version and date
@arg     sender    text    id of the user or bot
@arg     reply_to  text    id of the message to reply to, or empty
@arg     from      bytes   the sender's profile
@arg     partition text    the chat's partition
@arg     token     text    fill ticket for records missing in Redis
@ok      message_id  int
@ok      date        int     Unix time in s
@ok      peer        bytes   the chat's profile
@ok      reply       bytes?  record of the replied message
@ok      forward     flag    the outbox has new entries
@ok      post        int     id of the post; 0 in a group
@err     stale_run
@err     journal_full
@err     outbox_full
@err     chat_missing    ticket text
@err     member_missing  ticket text
@err     not_member      kind text
@err     not_allowed
@err     reply_missing   ticket text
@err     reply_not_found
]]
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token)) end
local done = remembered(request_key)
if done then
  local id, at, post = done:match('(%d+) (%d+) (%d+)')
  return ok(id, at, c.profile, present_reply(message_prefix, reply_to), 0, post)
end
local member = read_member(member_key, inc)
if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token)) end
if not is_member(member) then return refuse('not_member', c.kind) end
if is_channel(c) and not has_right(member, 'can_post_messages') then return refuse('not_allowed') end
local reply, refused = read_reply(c, message_prefix, reply_to, token)
if refused then return refused end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local seconds, ms = now()
local at = {meta = meta_key, journal = journal_key, changes = changes_key, channel = channel_key,
  message_prefix = message_prefix, partition = partition, post_prefix = is_channel(c) and post_prefix}
local id, record, version, post = append_message(at, c, chat, seconds, tail)
touch_chat(chat_key, c, version)
local kind = is_channel(c) and 'channel_post' or 'message'
local bots = receiving_bots(c, sender)
local forward = post_update(meta_key, outbox_key, version, ms, bots, sender, kind, chat, id, record, from, c.profile, reply or '', '')
remember(request_key, id .. ' ' .. seconds .. ' ' .. post, record)
return ok(id, seconds, c.profile, reply, forward and 1 or 0, post)

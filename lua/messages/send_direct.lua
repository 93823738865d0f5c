--[[
@summary Sends a message in the direct chat of a bot and a user.
@why     Sequence, message, journal, change log and the bot's queue change together, because two nodes may send at once.
@include partition
@include request
@include clock
@include message
@include chat
@include changes
@include append
@include reply
@include stream
@include queue
@include access
@key     meta         {NN}:meta                          HASH
@key     journal      {NN}:journal                       STREAM
@key     chat         {NN}:chat:<bot>.<user>             HASH
@key     ticket       {NN}:chat:<bot>.<user>:ticket      STRING
@key     request      {NN}:req:<id>                      STRING
@key     changes      {NN}:changes:<bot>.<user>          STREAM
@key     channel      {NN}:on_chat:<bot>.<user>          CHANNEL
@key     queue_state  {NN}:queue_state:<bot>             HASH
@key     queue        {NN}:queue:<bot>                   STREAM
@key     bot_channel  {NN}:on_bot:<bot>                  CHANNEL
@key     due          {NN}:webhooks_due                  ZSET
@derived message      {NN}:msg:<bot>.<user>:<message_id> STRING
@arg     run       text
@arg     chat      text    <bot>.<user>
@arg     tail      bytes   the record without version and date
@arg     reply_to  text    id of the message to reply to, or empty
@arg     from      bytes   the sender's profile for the bot's update; empty when the bot sends
@arg     token     text    fill ticket for records missing in Redis
@ok      message_id  int
@ok      date        int     Unix time in s
@ok      peer        bytes   the user's profile
@ok      reply       bytes?  record of the replied message
@ok      wake        flag    the bot's worker must be woken
@err     stale_run
@err     journal_full
@err     chat_missing   ticket text
@err     blocked
@err     reply_missing  ticket text
@err     reply_not_found
@err     queue_missing
@err     access_missing incarnation int
@err     cant_write
]]
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token)) end
local done = remembered(request_key)
if done then
  local id, at = done:match('(%d+) (%d+)')
  return ok(id, at, c.profile, present_reply(message_prefix, reply_to), 0)
end
local by_bot = from == ''
-- While the user blocks the bot, neither side can write. Starting the bot again unblocks it first.
if c.kind == 'blocked' then return refuse('blocked') end
local q, wake
if not by_bot then
  q = read_queue(queue_state_key)
  if not q then return refuse('queue_missing') end
  local no = refused_writer(q, chat_key, inc)
  if no then return no end
end
local reply, refused = read_reply(c, message_prefix, reply_to, token)
if refused then return refused end
if why then return refuse('journal_full') end

local seconds, ms = now()
local id, record, version = append_message({meta = meta_key, journal = journal_key, changes = changes_key,
  channel = channel_key, message_prefix = message_prefix}, c, chat, seconds, tail)
touch_chat(chat_key, c, version)
if q then
  local own = {meta = meta_key, journal = journal_key, state = queue_state_key, queue = queue_key, channel = bot_channel_key,
    due = due_key, bot = chat:match('^%d+')}
  push_update(q, own, version, ms, 1, 'message', chat, id, record, from, '', reply or '', '')
  wake = own.wake
end
remember(request_key, id .. ' ' .. seconds, record)
return ok(id, seconds, c.profile, reply, wake and 1 or 0)

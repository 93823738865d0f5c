--[[
@summary Reads messages by id for a member of the chat, if in Redis.
@repeatable The script only creates tickets.
@include partition
@include message
@include chat
@include control
@flag    allow-oom
@key     meta           {NN}:meta                         HASH
@key     chat           {NN}:chat:<chat>                  HASH
@key     ticket         {NN}:chat:<chat>:ticket           STRING
@key     member         {NN}:member:<chat>:<who>          STRING
@key     member_ticket  {NN}:member:<chat>:<who>:ticket   STRING
@derived message        {NN}:msg:<chat>:<message_id>      STRING
@arg     run      text
@arg     direct   flag    both sides of a direct chat may read it
@arg     token    text    fill ticket for records missing in Redis
@args    ids      text    message ids, at most LIMITS.messages_batch_max
@ok      newest   int     the chat's last message id
@ok      peer     bytes   profile of the user or the chat
@ok      rows     raw     records in the order of the ids; null where only Postgres has it
@err     stale_run
@err     chat_missing    ticket text
@err     member_missing  ticket text
@err     not_member      kind text
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token)) end
if not direct then
  local member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
end
local rows = {}
for i, id in ipairs(ids) do rows[i] = redis.call('GET', message_key(id)) end
return ok(c.seq, c.profile, rows)

--[[
@summary Returns the given messages that are in Redis, if the caller is a member of the chat.
@repeatable The script changes nothing except that it creates tickets.
@flag    allow-oom
@arg     direct   flag    both sides of a direct chat may read it
@args    ids      text    message ids, at most LIMITS.messages_batch_max
@ok      newest   int     the chat's last message id
@ok      peer     bytes   profile of the user or the chat
@ok      rows     raw     records in the order of the ids; null where only Postgres has it
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if not direct then
  local member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
end
local rows = {}
for i, id in ipairs(ids) do rows[i] = redis.call('GET', message_key(id)) end
return ok(c.seq, c.profile, rows)

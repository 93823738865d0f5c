--[[
@summary Unpins the pinned message in any chat.
@why     The script must check the right to pin and the pinned message in the same step.
@flag    allow-oom
@arg     chat        text
@arg     message_id  text    the expected pinned message; empty for any
@arg     all         flag    succeed even if no message is pinned
@arg     direct      flag    in a direct chat both sides may unpin
]]
local why, inc = closed(meta_key, journal_key, run, LIMITS.journal_reserve)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if redis.call('EXISTS', request_key) == 1 then return ok() end
if not direct then
  local member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
  if not may_pin(member, c) then return refuse('not_allowed') end
end
if all and c.pin == '0' then
  remember(request_key, 1)
  return ok()
end
if c.pin == '0' or (message_id ~= '' and message_id ~= c.pin) then return refuse('not_found') end
if why then return refuse('journal_full') end

local at = {meta = meta_key, journal = journal_key, chat = chat_key, changes = changes_key, channel = channel_key}
set_pin(at, c, next_version(meta_key), chat, '0', '')
remember(request_key, 1)
return ok()

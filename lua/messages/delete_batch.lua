--[[
@summary Deletes either all of the given messages in a chat, or none of them.
         Skips missing messages, and unpins the pinned message if it is deleted.
@why     The right to delete is checked against the current records and membership.
@flag    allow-oom
@arg     chat        text
@arg     who         text    id of the user or bot
@arg     direct      flag    in a direct chat both sides may delete any message
@args    ids         text    message ids, without duplicates, at most LIMITS.messages_batch_max
@err     messages_missing  cold texts tickets texts
]]
local why, inc = closed(meta_key, journal_key, run, LIMITS.journal_reserve)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if redis.call('EXISTS', request_key) == 1 then return ok() end
local member
if not direct then
  member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
end
local found, cold, tickets = {}, {}, {}
for _, id in ipairs(ids) do
  local header, segments_at
  if tonumber(id) <= c.seq then header, segments_at = header_of(message_key(id)) end
  if header then
    if header[6] ~= KIND_DELETED then found[#found + 1] = {id = id, header = header, segments_at = segments_at} end
  elseif tonumber(id) <= c.seq then
    cold[#cold + 1] = id
    tickets[#tickets + 1] = leave_ticket(message_key(id) .. ':ticket', token, inc)
  end
end
if #cold > 0 then return refuse('messages_missing', cold, tickets) end
local seconds = now()
local others = direct or has_right(member, 'can_delete_messages')
for _, each in ipairs(found) do
  local own = ('%.0f'):format(each.header[5]) == who
  local old = seconds - each.header[3] > LIMITS.delete_age_ms_max / 1000
  if old or not (own or others) then return refuse('cant_be_deleted') end
end
if why then return refuse('journal_full') end

local at = {meta = meta_key, journal = journal_key, chat = chat_key, changes = changes_key, channel = channel_key,
  message_prefix = message_prefix, post_prefix = post_prefix, acted_prefix = acted_prefix}
local version, unpin
for _, each in ipairs(found) do
  version = remove_message(at, c, chat, each.id, each.header, each.segments_at)
  unpin = unpin or c.pin == each.id
end
if version then close_removal(at, c, chat, version, unpin) end
remember(request_key, 1)
return ok()

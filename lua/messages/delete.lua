--[[
@summary Deletes a message in any chat, and unpins it if it was pinned. The tombstone stays until it is in Postgres.
@why     The right to delete is checked against the current record and membership, and a pin must not outlive its
         message.
@flag    allow-oom
@key     message         {NN}:msg:<chat>:<message_id>            STRING
@arg     chat        text
@arg     message_id  text
@arg     who         text    id of the user or bot
@arg     direct      flag    in a direct chat both sides may delete any message
]]
local why, inc = closed(meta_key, journal_key, run, LIMITS.journal_reserve)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if redis.call('EXISTS', request_key) == 1 then return ok() end
if tonumber(message_id) > c.seq then return refuse('not_found') end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token, inc)) end
local header, segments_at = read_header(record)
if header[6] == KIND_DELETED then return refuse('not_found') end
if not direct then
  local member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', c.kind) end
  local own = ('%.0f'):format(header[5]) == who
  if not own and not has_right(member, 'can_delete_messages') then return refuse('cant_be_deleted') end
end
local seconds = now()
if seconds - header[3] > LIMITS.delete_age_ms_max / 1000 then return refuse('cant_be_deleted') end
if why then return refuse('journal_full') end

local at = {meta = meta_key, journal = journal_key, chat = chat_key, changes = changes_key, channel = channel_key,
  message_prefix = message_key:sub(1, -#message_id - 1), post_prefix = post_prefix, acted_prefix = acted_prefix}
local version = remove_message(at, c, chat, message_id, header, segments_at)
close_removal(at, c, chat, version, c.pin == message_id)
remember(request_key, 1)
return ok()

--[[
@summary Shows a draft to the open event streams of a direct chat.
@why     Once the person has stopped a draft, no later change may show it again.
@repeatable Showing a draft twice does no harm.
@key     chat     {NN}:chat:<chat>         HASH
@key     ticket   {NN}:chat:<chat>:ticket  STRING
@key     channel  {NN}:on_chat:<chat>      CHANNEL
@arg     id       text   id of the draft
@arg     flags    text   s if the person may stop the draft, then k if a stopped draft stays visible
@arg     content  text   text and entities, as JSON
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if c.kind == 'blocked' then return refuse('blocked') end
local d = read_draft(draft_key)
local same = d and d.id == id
local _, ms = now()
local time, after = ('%.0f'):format(ms), ('%.0f'):format(c.seq)
-- Stores the draft less often than it is shown, because a write costs an fsync.
local due = not same or d.flags ~= flags or ms - d.stored >= LIMITS.draft_store_interval_ms
if due and same and d.stopped then
  redis.call('HSET', draft_key, 't', time, 'f', flags)
elseif due then
  redis.call('HSET', draft_key, 'i', id, 't', time, 's', after, 'f', flags, 'c', content, 'x', '')
end
if due then redis.call('PEXPIRE', draft_key, LIMITS.draft_ttl_ms) end
if same and d.stopped then return ok() end
redis.call('SPUBLISH', channel_key, 'draft ' .. id .. ' ' .. after .. ' -' .. flags .. ' ' .. content)
return ok()

--[[
@summary Publishes a draft to the open event streams of a direct chat.
@why     Once the person has stopped a draft, no later change may show it again.
@repeatable Showing a draft twice does no harm.
@combine 32 any_partition
@key     chat     {NN}:chat:<chat>         HASH
@key     ticket   {NN}:chat:<chat>:ticket  STRING
@key     channel  {NN}:on_chat:<chat>      CHANNEL
@arg     id       text   id of the draft
@arg     flags    text   s if the person may stop the draft, then k if a stopped draft stays visible
@arg     content  text   text and entities, as JSON
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local after, kind = read_last_message(chat_key, inc)
if not after then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if kind == 'blocked' then return refuse('blocked') end
local d = redis.call('HMGET', draft_key, 'i', 't', 'f', 'x')
local same = d[1] == id
local stopped = same and d[4] == '1'
local _, ms = now()
-- The draft is stored less often than it is published.
if not same or d[3] ~= flags or ms - d[2] >= LIMITS.draft_store_interval_ms then
  local time = ('%.0f'):format(ms)
  if stopped then
    redis.call('HSET', draft_key, 't', time, 'f', flags)
    redis.call('PEXPIRE', draft_key, 'LIMITS.draft_ttl_ms')
  else
    store_draft(draft_key, id, time, after, flags, content)
  end
end
if stopped then return ok() end
redis.call('SPUBLISH', channel_key, 'draft ' .. id .. ' ' .. after .. ' -' .. flags .. ' ' .. content)
return ok()

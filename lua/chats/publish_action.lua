--[[
@summary Publishes a chat action, such as typing, to the open event streams of a chat. Stores nothing.
@repeatable Showing an action twice does no harm.
@flag    allow-oom
@key     chat           {NN}:chat:<chat>                    HASH
@key     ticket         {NN}:chat:<chat>:ticket             STRING
@key     channel        {NN}:on_chat:<chat>                 CHANNEL
@arg     direct     flag
@arg     announced  text  the kind of message that a person's action announces, or empty for a bot. Channels do not show
                          actions of people
@arg     hint       text
@err     chat_missing    ticket text
@err     blocked
@err     chat_closed
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local kind = redis.call('HGET', chat_key, 't')
if not kind then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if kind == 'blocked' then return refuse('blocked') end
if not direct then
  local member = read_member(member_key, inc)
  if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
  if not is_member(member) then return refuse('not_member', kind) end
  if announced ~= '' then
    local c = {kind = kind, differing = redis.call('HGET', chat_key, 'd') or ''}
    if kind == 'closed' then return refuse('chat_closed') end
    if is_channel(c) then return ok() end
    local kind_refused = unless_permitted(member, c, announced)
    if kind_refused then return refuse('not_permitted', kind_refused) end
  end
end
redis.call('SPUBLISH', channel_key, hint)
return ok()

--[[
@summary Checks whether a person may write to a bot in their direct chat.
@key     queue_state  {NN}:queue_state:<bot>  HASH
@key     bot_channel  {NN}:on_bot:<bot>       CHANNEL
@err     access_missing  incarnation int
@err     cant_write
]]
-- Returns nil if the person is allowed to write. Otherwise returns the error reply of the script. The queue state of
-- the bot stores the write policy in three fields: wp is the policy, wv its version, and wi the incarnation of this
-- copy. The field w of the chat stores the policy version for which the person was checked. After this version comes a
-- + if the person may write, otherwise a -. A policy change is therefore a single write, however many chats exist.
local function refused_writer(q, chat, inc)
  if q.access_inc ~= inc then return refuse('access_missing', inc) end
  if q.policy == 'all' then return nil end
  local known = redis.call('HGET', chat, 'w')
  if known == q.access .. '+' then return nil end
  if known == q.access .. '-' then return refuse('cant_write') end
  return refuse('access_missing', inc)
end

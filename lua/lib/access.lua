--[[
@summary Whether a person may write to a bot in their direct chat. Needs queue.
]]
-- The state of the bot's queue keeps the bot's policy: wi the incarnation under which it was copied, wv its version, wp the policy.
-- The chat's record keeps of its person in w the version for which it was looked up, and + or -: a change of policy
-- is one write, however many chats there are. Returns nothing for one who may write, or else the script's own answer.
local function refused_writer(q, chat, inc)
  if q.access_inc ~= inc then return refuse('access_missing', inc) end
  if q.policy == 'all' then return nil end
  local known = redis.call('HGET', chat, 'w')
  if known == q.access .. '+' then return nil end
  if known == q.access .. '-' then return refuse('cant_write') end
  return refuse('access_missing', inc)
end

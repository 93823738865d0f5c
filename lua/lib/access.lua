--[[
@summary Checks whether a person may write to a bot in their direct chat. Requires the includes queue.
]]
-- The bot's queue state stores its write policy: wi is the incarnation of the copy, wv its version, wp the policy. The
-- chat's field w stores the policy version for which its person was checked, followed by + or -. So a policy change is
-- a single write, however many chats exist. Returns nil if the person may write, otherwise the script's reply.
local function refused_writer(q, chat, inc)
  if q.access_inc ~= inc then return refuse('access_missing', inc) end
  if q.policy == 'all' then return nil end
  local known = redis.call('HGET', chat, 'w')
  if known == q.access .. '+' then return nil end
  if known == q.access .. '-' then return refuse('cant_write') end
  return refuse('access_missing', inc)
end

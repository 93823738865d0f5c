--[[
@summary Finds the queue of a bot's replay, and the queue to which the replay delivers (decision 0081).
]]
-- Returns the state and the queue to which a replay delivers. Slot 0 stands for the bot's own queue, any other slot for
-- the queue of a route.
local function replay_target(state, queue, bot, slot)
  if slot == '0' then return state, queue end
  return route_key(state, bot, slot), route_key(queue, bot, slot)
end

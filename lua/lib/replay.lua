--[[
@summary Finds the queue of a bot's replay and its target (decision 0081).
]]
-- Returns the state and the queue of the replay's target. For the slot 0, this is the queue of the bot itself,
-- otherwise the queue of a route.
local function replay_target(state, queue, bot, slot)
  if slot == '0' then return state, queue end
  return route_key(state, bot, slot), route_key(queue, bot, slot)
end

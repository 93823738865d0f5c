--[[
@summary Reads Redis' time, the only clock that scripts use.
]]
local function now()
  local t = redis.call('TIME')
  local seconds = tonumber(t[1])
  return seconds, seconds * 1000 + math.floor(t[2] / 1000)
end

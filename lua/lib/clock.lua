--[[
@summary Redis' own time, the only clock that scripts believe.
]]
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]), t[1] * 1000 + math.floor(t[2] / 1000)
end

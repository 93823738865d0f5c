--[[
@summary Reads Redis' time, the only clock that scripts use.
]]
-- The time at which a combined run first read the clock.
local run_time = nil

local function now()
  if combined and run_time then return run_time.seconds, run_time.ms end
  local t = redis.call('TIME')
  local seconds = tonumber(t[1])
  local ms = seconds * 1000 + math.floor(t[2] / 1000)
  if combined then run_time = {seconds = seconds, ms = ms} end
  return seconds, ms
end

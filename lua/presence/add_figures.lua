--[[
@summary Adds a process's figures to the newest point of the history that the operators' page shows.
@why     All processes add to the same point.
@flag    allow-oom
@key     figures  {NN}:figures  HASH  index in the ring buffer -> number of the point, and its figures
@arg     added    text  pairs of a name and a whole number; sums have names with a plus sign, maxima have other names
@ok      rest_ms  int   time until the middle of the next point
@ok      first    int   1 if no process has added to this point before
@err     too_large
]]
local _, ms = now()
local step = LIMITS.history_step_ms
local at = math.floor(ms / step)
local number, place = ('%.0f'):format(at), ('%.0f'):format(at % LIMITS.history_points_max)

-- Ignores the stored point if it is an old point, from the previous pass through the ring buffer.
local kept, former = (redis.call('HGET', figures_key, place) or ''):match('^(%d+) (.*)$')
local names, values = {}, {}
for name, value in ((kept == number and former .. ' ' or '') .. added):gmatch('(%S+) (%d+)') do
  local was = values[name]
  if not was then names[#names + 1] = name end
  local sum = name:sub(1, 1) == '+' and was and was + value
  values[name] = sum or math.max(was or 0, tonumber(value))
end

local parts = {}
for i, name in ipairs(names) do parts[i] = name .. (' %.0f'):format(values[name]) end
local text = number .. ' ' .. table.concat(parts, ' ')
if #text > LIMITS.history_point_bytes_max then return refuse('too_large') end

redis.call('HSET', figures_key, place, text)
redis.call('PEXPIRE', figures_key, step * LIMITS.history_points_max)
return ok(math.floor((at + 1.5) * step - ms), kept == number and 0 or 1)

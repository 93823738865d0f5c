--[[
@summary Revocation epochs, which count within a generation.
]]
-- A Redis that restarted, was emptied or took over may have lost epochs and nodes: what it counts from then on is another
-- generation, named by its first caller, and whoever acknowledged an older one must forget everything.
local function generation_of(nodes, revoked, run, candidate)
  local known = redis.call('HMGET', nodes, 'run', 'generation')
  if known[1] == run then return known[2] end
  redis.call('HSET', nodes, 'run', run, 'generation', candidate)
  redis.call('DEL', revoked)
  return candidate
end

--[[
@summary Revocation epochs, which count within an incarnation of their partition.
]]
-- A Redis that restarted, was emptied or took over may have lost epochs and nodes: whoever acknowledged an epoch of a
-- former incarnation must forget everything.
local function begin_epochs(nodes, revoked, inc)
  if tonumber(redis.call('HGET', nodes, 'incarnation')) == inc then return end
  redis.call('HSET', nodes, 'incarnation', inc)
  redis.call('DEL', revoked)
end

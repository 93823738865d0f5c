--[[
@summary Resets the revocation epochs of a partition when the partition's incarnation changes.
]]
-- A Redis that restarted, was emptied or failed over may have lost epochs and nodes. Therefore, if a node's last
-- acknowledged epoch belongs to an earlier incarnation, the node must discard all cached tokens.
local function begin_epochs(nodes, revoked, inc)
  if tonumber(redis.call('HGET', nodes, 'incarnation')) == inc then return end
  redis.call('HSET', nodes, 'incarnation', inc)
  redis.call('DEL', revoked)
end

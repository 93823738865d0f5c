--[[
@summary Forgets a node that has stopped trusting its memory.
@repeatable A node leaves once.
@flag    allow-oom
@key     nodes  {NN}:auth_nodes  HASH
@arg     node   text
]]
redis.call('HDEL', nodes_key, node)
return ok()

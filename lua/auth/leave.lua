--[[
@summary Removes a node that has discarded its cached tokens.
@repeatable Removing a node twice changes nothing.
@flag    allow-oom
@key     nodes  {NN}:auth_nodes  HASH
@arg     node   text
]]
redis.call('HDEL', nodes_key, node)
return ok()

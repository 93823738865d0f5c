--[[
@summary Raises the revocation epoch for a user or a bot. The truth has been written before.
@flag    allow-oom
@key     nodes    {NN}:auth_nodes    HASH
@key     revoked  {NN}:auth_revoked  STREAM
@key     channel  {NN}:on_auth       CHANNEL
@arg     subject  text
@ok      epoch    int
]]
local epoch = redis.call('HINCRBY', nodes_key, 'epoch', 1)
redis.call('XADD', revoked_key, 'MAXLEN', '~', 10000, epoch .. '-0', 's', subject)
redis.call('SPUBLISH', channel_key, 'r')
return ok(epoch)

--[[
@summary Raises the revocation epoch for a user or a bot. The truth has been written before.
@include epochs
@flag    allow-oom
@key     nodes    {NN}:auth_nodes    HASH
@key     revoked  {NN}:auth_revoked  STREAM
@key     channel  {NN}:on_auth       CHANNEL
@arg     run        text
@arg     subject    text
@arg     candidate  text   unique name of a generation, should a new one begin
@ok      generation text
@ok      epoch      int
]]
local generation = generation_of(nodes_key, revoked_key, run, candidate)
local epoch = redis.call('HINCRBY', nodes_key, 'epoch', 1)
redis.call('XADD', revoked_key, 'MAXLEN', '~', LIMITS.auth_log_length_max, epoch .. '-0', 's', subject)
redis.call('SPUBLISH', channel_key, 'r')
return ok(generation, epoch)

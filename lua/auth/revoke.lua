--[[
@summary Raises the revocation epoch for users and bots. The caller has already committed the revocation to Postgres.
@repeatable A second run raises the epoch again, but revokes nothing more.
@flag    allow-oom
@key     nodes    {NN}:auth_nodes    HASH
@key     revoked  {NN}:auth_revoked  STREAM
@key     channel  {NN}:on_auth       CHANNEL
@arg     subjects   text   subjects to revoke, separated by spaces
@ok      incarnation int
@ok      epoch       int
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
begin_epochs(nodes_key, revoked_key, inc)
local epoch = redis.call('HINCRBY', nodes_key, 'epoch', 1)
redis.call('XADD', revoked_key, 'MAXLEN', '~', LIMITS.auth_log_length_max, epoch .. '-0', 's', subjects)
redis.call('SPUBLISH', channel_key, 'r')
return ok(inc, epoch)

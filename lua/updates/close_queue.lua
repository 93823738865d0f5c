--[[
@summary Closes the queue of a deleted bot. The queue then accepts no updates and no messages, and expires later.
@why     If the script removed the queue at once, an update in flight would open it again.
@repeatable Closing a queue twice changes nothing.
@flag    allow-oom
@key     state    {NN}:queue_state:<bot>   HASH
@key     queue    {NN}:queue:<bot>         STREAM
@key     marks    {NN}:queue_marks:<bot>   HASH
@arg     version  int    version of the write policy
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if redis.call('EXISTS', state_key) == 0 then return ok() end
redis.call('UNLINK', queue_key)
redis.call('HSET', state_key, 'bytes', 0, 'mask', 0, 'wi', inc, 'wv', version, 'wp', 'gone')
redis.call('PEXPIRE', state_key, LIMITS.queue_age_ms_max)
if redis.call('EXISTS', marks_key) == 1 then redis.call('PEXPIRE', marks_key, LIMITS.queue_age_ms_max) end
return ok()

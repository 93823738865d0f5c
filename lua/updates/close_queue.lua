--[[
@summary Closes the queue of a bot that was deleted: nothing enters it, nobody may write to it, and it goes by itself.
@why     It is not just removed: whoever is on the way to it with an update would open it again.
@repeatable Closing it again changes nothing.
@include partition
@flag    allow-oom
@key     meta     {NN}:meta                HASH
@key     state    {NN}:queue_state:<bot>   HASH
@key     queue    {NN}:queue:<bot>         STREAM
@key     marks    {NN}:queue_marks:<bot>   HASH
@arg     run      text
@arg     version  int    of who may write
@err     stale_run
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if redis.call('EXISTS', state_key) == 0 then return ok() end
redis.call('UNLINK', queue_key)
redis.call('HSET', state_key, 'bytes', 0, 'mask', 0, 'wi', inc, 'wv', version, 'wp', 'gone')
redis.call('PEXPIRE', state_key, LIMITS.queue_age_ms_max)
if redis.call('EXISTS', marks_key) == 1 then redis.call('PEXPIRE', marks_key, LIMITS.queue_age_ms_max) end
return ok()

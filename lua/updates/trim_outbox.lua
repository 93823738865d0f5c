--[[
@summary Deletes the prefix of an outbox that has been delivered to all its bots' queues.
@repeatable The prefix is gone after the first run.
@why     A Redis that lost writes may have lost queued updates of this prefix. The prefix is then forwarded again
         instead.
@include partition
@flag    allow-oom
@key     meta    {NN}:meta    HASH
@key     outbox  {NN}:outbox  STREAM
@arg     run     text
@arg     incarnation int  the incarnation under which the prefix was read
@arg     last    text    id of the last forwarded entry
@ok      left    int
@err     stale_run
@err     moved
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if inc ~= tonumber(incarnation) then return refuse('moved') end
local ms, seq = last:match('(%d+)-(%d+)')
redis.call('XTRIM', outbox_key, 'MINID', ms .. '-' .. (tonumber(seq) + 1))
return ok(redis.call('XLEN', outbox_key))

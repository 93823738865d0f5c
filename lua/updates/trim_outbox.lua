--[[
@summary Deletes the prefix of an outbox that has entered the queues of all its bots.
@repeatable The prefix is gone after the first time.
@why     A Redis that lost its tail may have lost what the queues took of this prefix: then it is forwarded again.
@include partition
@flag    allow-oom
@key     meta    {NN}:meta    HASH
@key     outbox  {NN}:outbox  STREAM
@arg     run     text
@arg     incarnation int  under which the prefix was read
@arg     last    text    id of the last entry that was forwarded
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

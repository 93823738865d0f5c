--[[
@summary Deletes the prefix of an outbox after its updates were delivered to the queues of all their bots.
@repeatable The prefix is gone after the first run.
@why     A Redis that lost writes may have lost queued updates of this prefix. The prefix is then forwarded again
         instead.
@flag    allow-oom
@key     outbox  {NN}:outbox  STREAM
@arg     incarnation int  the incarnation under which the prefix was read
@arg     last    text    id of the last forwarded entry
@ok      left    int
@err     moved
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if inc ~= tonumber(incarnation) then return refuse('moved') end
local ms, seq = last:match('(%d+)-(%d+)')
redis.call('XTRIM', outbox_key, 'MINID', ms .. '-' .. (tonumber(seq) + 1))
local left = redis.call('XLEN', outbox_key)
-- An empty outbox is deleted, because sweeps check every partition that has an outbox. New ids do not depend on old
-- ids.
if left == 0 then redis.call('DEL', outbox_key) end
return ok(left)

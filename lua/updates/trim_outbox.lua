--[[
@summary Deletes the first entries of an outbox.
         The updates of these entries have all been added to the queues of the bots.
@repeatable The first call already removed these entries.
@why     A Redis that lost writes may have lost queued updates of these entries. In that case, the entries are kept and
         forwarded again.
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
-- Deletes an empty outbox, because sweeps check every partition that has an outbox. This is safe, because new ids do
-- not depend on old ids.
if left == 0 then redis.call('DEL', outbox_key) end
return ok(left)

--[[
@summary Reads entries of a partition's outbox, from the start or after a given entry, up to a limit.
@flag    no-writes
@key     outbox  {NN}:outbox  STREAM
@arg     after   text    outbox entry after which to read; empty to read from the start
@arg     limit   int
@ok      rows    raw     stream entries
@ok      incarnation int  the incarnation under which they were read
@ok      more    flag    there may be more after them
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local rows, _, more = read_within(outbox_key, after == '' and '-' or '(' .. after, '+', tonumber(limit))
return ok(rows, inc, more and 1 or 0)

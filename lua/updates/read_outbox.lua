--[[
@summary Reads the unacknowledged prefix of a partition's outbox, from its start or behind an entry, up to a bound.
@flag    no-writes
@include partition
@include stream
@key     meta    {NN}:meta    HASH
@key     outbox  {NN}:outbox  STREAM
@arg     run     text
@arg     after   text    id of an entry; empty for the start
@arg     limit   int
@ok      rows    raw     stream entries
@ok      incarnation int  under which they were read
@ok      more    flag    there may be more behind them
@err     stale_run
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local rows, _, more = read_within(outbox_key, after == '' and '-' or '(' .. after, '+', tonumber(limit))
return ok(rows, inc, more and 1 or 0)

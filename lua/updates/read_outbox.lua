--[[
@summary Reads the unacknowledged prefix of a partition's outbox, from its start or behind an entry, up to a bound.
@flag    no-writes
@key     outbox  {NN}:outbox  STREAM
@arg     after   text    id of an entry; empty for the start
@arg     limit   int
@ok      rows    raw     stream entries
]]
return ok(redis.call('XRANGE', outbox_key, after == '' and '-' or '(' .. after, '+', 'COUNT', limit))

--[[
@summary Reads the whole unacknowledged prefix of a partition's outbox, up to a bound.
@flag    no-writes
@key     outbox  {NN}:outbox  STREAM
@arg     limit   int
@ok      rows    raw     stream entries
]]
return ok(redis.call('XRANGE', outbox_key, '-', '+', 'COUNT', limit))

--[[
@summary Returns the size of a partition's journal, and the run id of the Redis server for which the partition is open.
@why     The length and the first entry must be read at the same instant.
@key     meta        {NN}:meta     HASH    run, ver, hw, hwb, jw, jt
@key     journal     {NN}:journal  STREAM
@ok      length      int
@ok      first       int?          version of the oldest entry
@ok      version     int           last version given out in the partition
@ok      run         text?
@ok      high_water  int
@ok      bytes       int           total bytes of the entries
@ok      bytes_max   int
@flag    no-writes
]]
local known = redis.call('HMGET', meta_key, 'run', 'ver', 'hw', 'jw', 'jt', 'hwb')
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', 1)[1]
return ok(
  redis.call('XLEN', journal_key),
  oldest and oldest[1]:match('^%d+') or false,
  known[2] or '0',
  known[1],
  known[3] or '0',
  ('%.0f'):format(math.max(0, (known[4] or 0) - (known[5] or 0))),
  known[6] or '0'
)

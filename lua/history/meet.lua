--[[
@summary Notes which server Postgres is now and under which incarnation, and says which it was before.
@repeatable The same server is noted again.
@flag    allow-oom
@key     history      {NN}:postgres  HASH
@arg     server       text   system identifier and timeline
@arg     incarnation  int    how often Postgres was found to have gone back
@ok      before       text?
]]
local before = redis.call('HGET', history_key, 'server')
redis.call('HSET', history_key, 'server', server, 'incarnation',
  math.max(tonumber(redis.call('HGET', history_key, 'incarnation') or 0), tonumber(incarnation)))
return ok(before)

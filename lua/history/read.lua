--[[
@summary Returns the last commit of Postgres that Redis recorded, and the current server.
@flag    no-writes
@key     history  {NN}:postgres  HASH
@ok      fields   raw
]]
return ok(redis.call('HGETALL', history_key))

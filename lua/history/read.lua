--[[
@summary Reads what Redis recorded about Postgres: how far it has committed, and which server is current.
@flag    no-writes
@key     history  {NN}:postgres  HASH
@ok      fields   raw
]]
return ok(redis.call('HGETALL', history_key))

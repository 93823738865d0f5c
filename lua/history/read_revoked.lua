--[[
@summary Reads what was revoked lately, a page at a time.
@flag    no-writes
@key     revoked  {NN}:revoked  ZSET
@arg     from     int    place of the first
@arg     count    int
@ok      revoked  texts
]]
return ok(redis.call('ZRANGE', revoked_key, from, tonumber(from) + tonumber(count) - 1))

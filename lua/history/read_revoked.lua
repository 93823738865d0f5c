--[[
@summary Reads recent revocations, one page at a time, starting at a given time.
@why     Old entries may be removed between two pages, so an index would not be a reliable position.
@flag    no-writes
@key     revoked  {NN}:revoked  ZSET
@arg     from     int    time in ms of the first revocation to read
@arg     count    int
@ok      revoked  texts
@ok      last     int    time in ms of the last revocation returned
@ok      ties     int    number of returned revocations with that same time
]]
local found = redis.call('ZRANGE', revoked_key, from, '+inf', 'BYSCORE', 'LIMIT', '0', count, 'WITHSCORES')
local revoked, last, ties = {}, from, 0
for i = 1, #found, 2 do
  revoked[#revoked + 1] = found[i]
  if found[i + 1] ~= last then last, ties = found[i + 1], 0 end
  ties = ties + 1
end
return ok(revoked, last, ties)

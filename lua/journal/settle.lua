--[[
@summary Removes flushed entries from the journal and sets an expiry on the flushed entities.
@why     An entity that changed after its flush must not expire, so its version is checked in the same step.
@key     meta      {NN}:meta      HASH     jw, jt, fl
@key     journal   {NN}:journal   STREAM
@keys    entities  {NN}:…         STRING   message records, then HASHes with a field v
@arg     after     text           id of the first entry to keep
@arg     hot_ms    int            time to live of flushed entities
@arg     records   int            how many of the entities are message records
@arg     brief     int            how many of the records, from the first, expire soon because their bot's storage in
                                  Redis is used up
@args    versions  int            the flushed version of each entity
@ok      length    int            entries left in the journal
@ok      expiring  int            entities that now have an expiry
@flag    allow-oom
]]
-- All Redis calls use pcall, so one malformed key cannot block the journal. The script keeps entities that it cannot
-- parse. Numbers are passed as text, because Redis converts Lua numbers slowly and a batch has about a thousand
-- numbers.
local count, soon = tonumber(records), tonumber(brief)
local protected, unpack_one = redis.pcall, cmsgpack.unpack_one

-- A record starts with one byte for the array, one byte for the format, and the version.
local function has_record(key, version)
  local head = protected('GETRANGE', key, '2', '10')
  if type(head) ~= 'string' then return false end
  local readable, _, found = pcall(unpack_one, head)
  return readable and found == tonumber(version)
end

local expiring = 0
for i, key in ipairs(entities_keys) do
  local same
  if i <= count then
    same = has_record(key, versions[i])
  else
    same = protected('HGET', key, 'v') == versions[i]
  end
  -- A tombstone is kept as long as a record, because Postgres may be restored to a state before the deletion.
  if same then expiring = expiring + redis.call('PEXPIRE', key, i <= soon and 'LIMITS.redis_full_ttl_ms' or hot_ms) end
end
redis.call('XTRIM', journal_key, 'MINID', '=', after)
-- The id of an entry contains the number of bytes that were journaled before this entry. Earlier releases wrote 0
-- instead.
local left = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', 1)[1]
local before = left and left[1]:match('%d+$') or redis.call('HGET', meta_key, 'jw')
if before and before ~= '0' then redis.call('HSET', meta_key, 'jt', before) end
-- Readers of a Postgres replica compare the flushed version with the version that the replica has reached.
local flushed = tonumber(after:match('^%d+')) - 1
if flushed > tonumber(redis.call('HGET', meta_key, 'fl') or -1) then
  redis.call('HSET', meta_key, 'fl', ('%.0f'):format(flushed))
end
return ok(redis.call('XLEN', journal_key), expiring)

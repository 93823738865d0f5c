--[[
@summary Removes flushed entries from the journal and lets the entities they left in Postgres expire.
@why     An entity that changed since it was read must stay: version and deadline are one step.
@key     meta      {NN}:meta      HASH     jw, jt, fl
@key     journal   {NN}:journal   STREAM
@keys    entities  {NN}:…         STRING   records of messages, then HASHes with a field v
@arg     after     text           first id that stays
@arg     hot_ms    int            time to live of what is in Postgres
@arg     records   int            how many of the entities are records
@arg     brief     int            how many of those, from the first, leave soon: their bot has had its bytes
@args    versions  int            what Postgres has of each entity
@ok      length    int            entries left
@ok      expiring  int            entities that have a deadline now
@flag    allow-oom
]]
-- Calls are protected: one odd key must not keep the journal from shrinking. An entity that is not understood stays.
-- Numbers are given as text: Redis spells a Lua number digit by digit, a thousand times a batch.
local count, soon = tonumber(records), tonumber(brief)
local protected, unpack_one = redis.pcall, cmsgpack.unpack_one

-- A record is an array: its lead byte, its format (one byte), then its version.
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
  -- Tombstones stay as long as what they bury would have: Postgres may go back to before it was deleted.
  if same then expiring = expiring + redis.call('PEXPIRE', key, i <= soon and 'LIMITS.redis_full_ttl_ms' or hot_ms) end
end
redis.call('XTRIM', journal_key, 'MINID', '=', after)
-- The first entry left knows how many bytes were journaled before it, however often a prefix is settled. One of a former release
-- does not, and says 0.
local left = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', 1)[1]
local before = left and left[1]:match('%d+$') or redis.call('HGET', meta_key, 'jw')
if before and before ~= '0' then redis.call('HSET', meta_key, 'jt', before) end
-- Readers of a replica of Postgres ask whether it has come as far.
local flushed = tonumber(after:match('^%d+')) - 1
if flushed > tonumber(redis.call('HGET', meta_key, 'fl') or -1) then
  redis.call('HSET', meta_key, 'fl', ('%.0f'):format(flushed))
end
return ok(redis.call('XLEN', journal_key), expiring)

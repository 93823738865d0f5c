--[[
@summary Removes flushed entries from the journal and lets the entities they left in Postgres expire.
@why     An entity that changed since it was read must stay: version and deadline are one step.
@key     journal   {NN}:journal   STREAM
@keys    entities  {NN}:…         STRING   records of messages, then HASHes with a field v
@arg     after     text           first id that stays
@arg     hot_ms    int            time to live of what is in Postgres
@arg     records   int            how many of the entities are records
@args    versions  int            what Postgres has of each entity
@ok      length    int            entries left
@ok      expiring  int            entities that have a deadline now
@flag    allow-oom
]]
-- Calls are protected: one odd key must not keep the journal from shrinking. An entity that is not understood stays.
local function version_of(index, key)
  if index > tonumber(records) then return tonumber((redis.pcall('HGET', key, 'v'))) end
  -- A record is an array: its lead byte, its format, then its version.
  local head = redis.pcall('GETRANGE', key, 0, 10)
  if type(head) ~= 'string' or #head < 3 then return nil end
  local readable, _, version = pcall(cmsgpack.unpack_one, head, 2)
  return readable and version
end

local expiring = 0
for i = 1, #entities_keys do
  local key = entities_keys[i]
  if version_of(i, key) == tonumber(versions[i]) then
    expiring = expiring + redis.call('PEXPIRE', key, hot_ms)
  end
end
redis.call('XTRIM', journal_key, 'MINID', '=', after)
return ok(redis.call('XLEN', journal_key), expiring)

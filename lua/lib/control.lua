--[[
@summary Copies of control records: arrays of version, incarnation and fields. Postgres has the originals.
]]
-- Returns the record's bytes and version if it was copied under the current incarnation. Older copies may be revoked,
-- because Redis may have lost the revocation.
local function read_control(key, inc)
  local bytes = redis.call('GET', key)
  if not bytes then return nil end
  local _, version, copied_under = cmsgpack.unpack_limit(bytes, 2, 1)
  if copied_under ~= inc then return nil end
  return bytes, version
end

-- Returns how long a copy lives. Copies of absent records (version 0) expire sooner, because clients can ask for any
-- name.
local function copy_ttl(version, ttl_ms)
  return tonumber(version) == 0 and math.min(tonumber(ttl_ms), LIMITS.absent_ttl_ms) or ttl_ms
end

-- Returns a group member's status and rights, or nil if they must be read from Postgres.
local function read_member(key, inc)
  local bytes = read_control(key, inc)
  if not bytes then return nil end
  local record = cmsgpack.unpack(bytes)
  return {status = record[3], rights = record[4]}
end

local function is_member(m)
  return m.status == 'creator' or m.status == 'administrator' or m.status == 'member'
end

local function has_right(m, right)
  return m.status == 'creator' or (m.status == 'administrator' and m.rights[right] == true)
end

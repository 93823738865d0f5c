--[[
@summary Copies of control records: arrays of version, incarnation and fields. Postgres holds the truth.
]]
-- The bytes and version of the record, if it was copied under the present incarnation: a Redis that lost its tail may
-- hold one that was revoked.
local function read_control(key, inc)
  local bytes = redis.call('GET', key)
  if not bytes then return nil end
  local _, version, copied_under = cmsgpack.unpack_limit(bytes, 2, 1)
  if copied_under ~= inc then return nil end
  return bytes, version
end

-- How long a copy stays. What never was (version 0) may be asked for under any name: its copies are gone sooner.
local function copy_ttl(version, ttl_ms)
  return tonumber(version) == 0 and math.min(tonumber(ttl_ms), LIMITS.absent_ttl_ms) or ttl_ms
end

-- The record of a member of a group: status and rights, or nil when it must be read back.
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

--[[
@summary Reads copies of control records: arrays of version, incarnation and fields. Postgres has the originals.
@key     member         {NN}:member:<chat>:<who>         STRING
@key     member_ticket  {NN}:member:<chat>:<who>:ticket  STRING
@derived member         {NN}:member:<chat>:<who>         STRING
@err     member_missing  ticket text
@err     not_member      kind text
@err     not_allowed
]]
-- Returns the bytes and version of a copied record if the copy was made under the current incarnation. An older copy
-- may contain revoked data, because Redis may have lost the revocation.
local function read_control(key, inc)
  local bytes = redis.call('GET', key)
  if not bytes then return nil end
  local _, version, copied_under = cmsgpack.unpack_limit(bytes, 2, 1)
  if copied_under ~= inc then return nil end
  return bytes, version
end

-- Returns the time to live of a copy. A copy with version 0 says that no record exists. Such a copy expires sooner,
-- because clients can look up any number of unknown names.
local function copy_ttl(version, ttl_ms)
  return tonumber(version) == 0 and math.min(tonumber(ttl_ms), LIMITS.absent_ttl_ms) or ttl_ms
end

-- Returns a member's status and rights, or nil if they must be read from Postgres.
local function read_member(key, inc)
  local bytes = read_control(key, inc)
  if not bytes then return nil end
  local record = cmsgpack.unpack(bytes)
  return {status = record[3], rights = record[4], ends = record[6]}
end

local function is_member(m)
  return m.status == 'member' or m.status == 'administrator' or m.status == 'creator' or m.status == 'restricted'
end

local function has_right(m, right)
  return m.status == 'creator' or (m.status == 'administrator' and m.rights[right] == true)
end

--[[
@summary Copies of control records: arrays of version, incarnation and fields. Postgres holds the truth.
]]
-- The record, if it was copied under the present incarnation: a Redis that lost its tail may hold revoked ones.
local function read_control(key, inc)
  local bytes = redis.call('GET', key)
  if not bytes then return nil end
  local record = cmsgpack.unpack(bytes)
  if record[2] ~= inc then return nil end
  return record, bytes
end

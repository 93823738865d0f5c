--[[
@summary Builds updates about inline queries.
]]
-- The bits of the update kinds `inline_query` and `chosen_inline_result` in masks (`rules/update_kinds.ts`).
local INLINE_QUERY_BIT, CHOSEN_RESULT_BIT = 2048, 4096

-- Returns a record that contains only the date, for an update without a message.
local function dated(ms, version)
  return tombstone({[3] = math.floor(ms / 1000), [5] = 0}, version)
end

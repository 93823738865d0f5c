--[[
@summary Holds the draft of a message that a bot is writing to a person. A direct chat has at most one.
@key     draft  {NN}:draft:<chat>  HASH
]]
-- The bit of the update kind (`rules/update_kinds.ts`).
local STOPPED_GENERATION_BIT = 8192

-- Returns the draft, or nil. Fields:
--   i    id of the draft, chosen by the bot
--   t    when the draft was stored, in ms
--   s    id of the chat's last message at that time
--   f    flags: s if the person may stop the draft, k if a stopped draft stays visible
--   c    text and entities, as JSON
--   x    1 once the person has stopped the draft
local function read_draft(key)
  local d = redis.call('HMGET', key, 'i', 't', 's', 'f', 'c', 'x')
  if not d[1] then return nil end
  return {id = d[1], stored = tonumber(d[2]), after = d[3], flags = d[4], content = d[5], stopped = d[6] == '1'}
end

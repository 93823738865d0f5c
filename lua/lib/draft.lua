--[[
@summary Holds the draft of a message that a bot is writing to a person. A direct chat has at most one draft.
@key     draft  {NN}:draft:<chat>  HASH
]]
-- The bit of the update kind `stopped_message_generation` in masks (`rules/update_kinds.ts`).
local STOPPED_GENERATION_BIT = 8192

-- Returns the draft, or nil. Fields:
--   i    id of the draft, chosen by the bot
--   t    when the draft was stored, in ms
--   s    id of the chat's last message at that time
--   f    flags: s if the person may stop the draft, k if a stopped draft stays visible
--   c    text and entities, as JSON
--   x    1 once the person has stopped the draft
--
-- A draft is not a message, and the next change stores it again. Until it is stopped, Redis therefore writes it neither
-- to the append-only file nor to replicas.
local function read_draft(key)
  local d = redis.call('HMGET', key, 'i', 't', 's', 'f', 'c', 'x')
  if not d[1] then return nil end
  return {id = d[1], stored = tonumber(d[2]), after = d[3], flags = d[4], content = d[5], stopped = d[6] == '1'}
end

-- Stores a draft only in the memory of this Redis server, so that Redis need not wait for its disk. Losing a draft does
-- no harm.
local function store_draft(key, id, time, after, flags, content)
  redis.set_repl(redis.REPL_NONE)
  redis.call('HSET', key, 'i', id, 't', time, 's', after, 'f', flags, 'c', content, 'x', '')
  redis.call('PEXPIRE', key, 'LIMITS.draft_ttl_ms')
  redis.set_repl(redis.REPL_ALL)
end

-- Stores a draft as stopped. Writes all fields, because the append-only file and the replicas do not have the draft
-- yet.
local function stop_draft(key, d)
  local content = d.flags:find('k') and d.content or ''
  local time = ('%.0f'):format(d.stored)
  redis.call('HSET', key, 'i', d.id, 't', time, 's', d.after, 'f', d.flags, 'c', content, 'x', '1')
  redis.call('PEXPIREAT', key, ('%.0f'):format(d.stored + LIMITS.draft_ttl_ms))
end

--[[
@summary Stores updates for bots in other partitions, in the order in which the chat changed.
@key     outbox  {NN}:outbox  STREAM
@err     outbox_full
]]
-- Computes the size from the id of the first entry, which contains the number of bytes added to the outbox earlier.
local function outbox_full(meta, outbox)
  local length = redis.call('XLEN', outbox)
  if length >= LIMITS.outbox_length_max then return true end
  -- Skips the byte limit for few entries, which cannot exceed it even at their maximum size.
  if length < LIMITS.outbox_length_small then return false end
  local first = redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1)[1]
  return (redis.call('HGET', meta, 'ow') or 0) - first[1]:match('%d+$') >= LIMITS.outbox_bytes_max
end

-- Returns the bots that receive a message, an edit or a notice of a pin by `author`. If a bot is the author in a group,
-- only this bot receives it. Otherwise two bots could answer each other forever.
local function receiving_bots(c, author)
  local by_bot = (',' .. c.bots .. ','):find(',' .. author .. ',', 1, true)
  return by_bot and not is_channel(c) and author or c.bots
end

-- Adds an update for `bots` (comma-separated ids), except for the bot `except`. Returns true if any bot is left.
local function post_update(meta, outbox, version, now_ms, bots, except, kind, chat, id, record, from, peer, reply, extra)
  local others = {}
  for bot in bots:gmatch('%d+') do
    if bot ~= except then others[#others + 1] = bot end
  end
  if #others == 0 then return false end
  local size = #chat + #id + #record + #from + #peer + #reply + #extra
  local before = redis.call('HINCRBY', meta, 'ow', size) - size
  redis.call('XADD', outbox, ('%s-%.0f'):format(version, before), 'b', table.concat(others, ','), 'k', kind,
    't', ('%.0f'):format(now_ms), 'c', chat, 'm', id, 'r', record, 'f', from, 'p', peer, 'y', reply, 'x', extra)
  return true
end

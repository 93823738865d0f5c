--[[
@summary Stores updates for bots in other partitions, in the order of the chat's changes.
@key     outbox  {NN}:outbox  STREAM
@err     outbox_full
]]
-- Returns whether the outbox is full. The id of the first entry contains the number of bytes that were ever added
-- before this entry. The size of the outbox is the number of bytes ever added, minus this number.
local function outbox_full(meta, outbox)
  local length = redis.call('XLEN', outbox)
  if length >= LIMITS.outbox_length_max then return true end
  -- Does not check the bytes if there are few entries, because even entries of the maximum size could not exceed the
  -- limit.
  if length < LIMITS.outbox_length_small then return false end
  local first = redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1)[1]
  return (redis.call('HGET', meta, 'ow') or 0) - first[1]:match('%d+$') >= LIMITS.outbox_bytes_max
end

-- Returns the bots that get an update about a message, an edit or a pin by `author`. If `author` is a bot in a group,
-- no other bot gets the update, because two bots could otherwise answer each other forever.
local function receiving_bots(c, author)
  local by_bot = (',' .. c.bots .. ','):find(',' .. author .. ',', 1, true)
  return by_bot and not is_channel(c) and author or c.bots
end

-- Adds an update for `bots` (comma-separated ids), but not for the bot `except`. Returns false if no bot is left.
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

--[[
@summary Updates for bots that live in other partitions, in the order in which the chat changed. Needs chat.
]]
local function outbox_full(outbox)
  return redis.call('XLEN', outbox) >= LIMITS.outbox_length_max
end

-- The bots that receive a message or an edit of it. In a group another bot's message reaches none but its author: two bots would
-- answer each other for ever.
local function receiving_bots(c, author)
  local by_bot = (',' .. c.bots .. ','):find(',' .. author .. ',', 1, true)
  return by_bot and not is_channel(c) and author or c.bots
end

-- `bots` are ids, comma-separated; the bot `except` hears nothing. True when anyone does.
local function post_update(outbox, version, now_ms, bots, except, kind, chat, id, record, from, peer, reply, extra)
  local others = {}
  for bot in bots:gmatch('%d+') do
    if bot ~= except then others[#others + 1] = bot end
  end
  if #others == 0 then return false end
  redis.call('XADD', outbox, version .. '-0', 'b', table.concat(others, ','), 'k', kind,
    't', ('%.0f'):format(now_ms), 'c', chat, 'm', id, 'r', record, 'f', from, 'p', peer, 'y', reply, 'x', extra)
  return true
end

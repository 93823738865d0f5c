--[[
@summary A chat's record in Redis: its message sequence and the copies that messages need. Requires the includes partition.
]]
-- Fields: s last message id, i incarnation of s, v version of the last journaled change, c version of the last logged
-- change, pin id of the pinned message, p profile of the user or chat, pv its version, t kind of chat, b bots of a
-- group or channel (ids, comma-separated), pi incarnation under which p, t and b were copied. Returns nil when the chat
-- is missing or was copied under another incarnation, because a Redis that lost writes may list a bot that was removed.
local function read_chat(chat, inc)
  local c = redis.call('HMGET', chat, 's', 'i', 'c', 'p', 'b', 'pi', 't', 'pin')
  if not c[1] or tonumber(c[6]) ~= inc then return nil end
  return {seq = tonumber(c[1]), inc = tonumber(c[2]), changed = c[3], profile = c[4], bots = c[5] or '', kind = c[7],
    pin = c[8] or '0'}
end

-- A direct chat is 'direct', or 'blocked' once its user has blocked the bot. Others are 'group', 'channel' or
-- 'private', a channel visible only to members.
local function is_channel(c)
  return c.kind == 'channel' or c.kind == 'private'
end

-- Returns the id of the next message, as text. After the incarnation was raised, it skips ids that may have been lost.
local function next_message_id(c, version)
  local inc = incarnation_of(version)
  local step = (c.inc == inc) and 1 or LIMITS.incarnation_sequence_skip + 1
  c.seq, c.inc, c.raised = ('%.0f'):format(c.seq + step), inc, c.raised or c.inc ~= inc
  return c.seq
end

-- Records this version as the chat's last change, and keeps the chat in Redis until it is flushed to Postgres. `pin`,
-- if given, becomes the pinned message.
local function touch_chat(chat, c, version, pin)
  if pin then
    redis.call('HSET', chat, 's', c.seq, 'v', version, 'c', version, 'pin', pin)
  else
    redis.call('HSET', chat, 's', c.seq, 'v', version, 'c', version)
  end
  if c.raised then redis.call('HSET', chat, 'i', c.inc) end
  redis.call('PERSIST', chat)
end

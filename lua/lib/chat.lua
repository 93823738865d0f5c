--[[
@summary Reads and writes a chat's record in Redis: the message sequence, and copies of data that messages need.
@key     chat    {NN}:chat:<chat>         HASH
@key     ticket  {NN}:chat:<chat>:ticket  STRING
@derived chat    {NN}:chat:<chat>         HASH
@err     chat_missing  ticket text
@err     blocked
]]
-- Returns nil if the chat is missing. Also returns nil if its record was copied under another incarnation, because a
-- Redis that lost writes may list a bot that was removed. Fields:
--   s    last message id
--   i    incarnation of s
--   v    version of the last journaled change
--   c    version of the last logged change
--   pin  id of the pinned message
--   kb   ids of the messages whose reply keyboards are shown, newest first (comma-separated)
--   p    profile of the user or chat
--   pv   version of p
--   t    kind of chat
--   b    bots of a group or channel (ids, comma-separated)
--   pi   incarnation under which p, t, b and d were copied
--   d    permissions of members that differ from the defaults (names, comma-separated)
local function read_chat(chat, inc)
  local c = redis.call('HMGET', chat, 's', 'i', 'c', 'p', 'b', 'pi', 't', 'pin', 'd')
  if not c[1] or tonumber(c[6]) ~= inc then return nil end
  return {seq = tonumber(c[1]), inc = tonumber(c[2]), changed = c[3], profile = c[4], bots = c[5] or '', kind = c[7],
    pin = c[8] or '0', differing = c[9] or ''}
end

-- Returns the id of a chat's last message as text, and the kind of the chat. Returns nil if `read_chat` returns nil.
local function read_last_message(chat, inc)
  local c = redis.call('HMGET', chat, 's', 'pi', 't')
  if not c[1] or tonumber(c[2]) ~= inc then return nil end
  return c[1], c[3]
end

-- The kind of a direct chat is 'direct', or 'blocked' if the user has blocked the bot. The other kinds are 'group',
-- 'channel' (public), 'private' (a channel that only members can see), 'person' (a chat of two people) and 'closed' (a
-- chat of two people in which nobody can write).
local function is_channel(c)
  return c.kind == 'channel' or c.kind == 'private'
end

-- Returns the id of the next message, as text. Skips a range of ids for each raise of the incarnation since the last
-- message, because Redis may have lost messages with these ids. The chat may have a higher incarnation than Redis: a
-- node may register an incarnation in Postgres that Redis then does not adopt.
local function next_message_id(c, version)
  local inc, step = incarnation_of(version), 1
  if c.inc < inc then
    step = 1 + (inc - c.inc) * LIMITS.incarnation_sequence_skip
    c.inc, c.raised = inc, true
  end
  c.seq = ('%.0f'):format(c.seq + step)
  return c.seq
end

-- Records `version` as the chat's last change, and keeps the chat in Redis until the change is flushed to Postgres.
-- `pin`, if given, becomes the id of the pinned message.
local function touch_chat(chat, c, version, pin)
  if pin then
    redis.call('HSET', chat, 's', c.seq, 'v', version, 'c', version, 'pin', pin)
  else
    redis.call('HSET', chat, 's', c.seq, 'v', version, 'c', version)
  end
  if c.raised then redis.call('HSET', chat, 'i', c.inc) end
  redis.call('PERSIST', chat)
end

-- Returns the journal image of a chat's pinned message and reply keyboards, or an empty string if the chat has neither.
local function marks_image(pin, keyboards)
  if keyboards ~= '' then return cmsgpack.pack({tonumber(pin), keyboards}) end
  return pin == '0' and '' or cmsgpack.pack({tonumber(pin)})
end

-- Records that a message has a reply keyboard. A keyboard for all members replaces all earlier keyboards. A keyboard
-- for some members replaces nothing, because the other members still see the earlier keyboards. The caller must call
-- touch_chat first.
local function note_keyboard(at, c, chat_key, chat, id, for_some)
  local ids = {id}
  local before = for_some and redis.call('HGET', chat_key, 'kb') or ''
  for each in before:gmatch('%d+') do
    if #ids < LIMITS.chat_keyboards_max then ids[#ids + 1] = each end
  end
  local keyboards, version = table.concat(ids, ','), next_version(at.meta)
  redis.call('HSET', chat_key, 'kb', keyboards, 'v', version)
  journal_image(at, version, 'pin:' .. chat, marks_image(c.pin, keyboards), chat_key)
end

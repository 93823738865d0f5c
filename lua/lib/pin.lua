--[[
@summary Reads and sets the pinned message in a chat. Each chat has at most one pinned message.
@err     not_found
@err     service
]]
-- Returns nil if the message can be pinned, otherwise the error.
local function unpinnable(record)
  local kind = read_header(record)[6]
  if kind == KIND_DELETED then return 'not_found' end
  if kind == KIND_SERVICE then return 'service' end
  return nil
end

-- Returns whether the member may pin. Channels have no separate right for pins. In groups, ordinary members may have
-- the permission to pin. In a chat of two people, both people may pin.
local function may_pin(member, c)
  if c.kind == 'person' or c.kind == 'closed' then return true end
  if is_channel(c) then return has_right(member, 'can_edit_messages') end
  if has_right(member, 'can_pin_messages') then return true end
  return member.status ~= 'administrator' and is_permitted(member, c.differing, 'can_pin_messages', false)
end

-- Sets the pinned message, or removes it if the id is '0'. Updates the chat's field, the journal and the change log.
-- `at` contains the keys meta, journal, chat, changes and channel. `notify` is passed to clients through the change
-- log. The caller must validate the change first.
local function set_pin(at, c, version, chat, message_id, notify)
  journal_image(at, version, 'pin:' .. chat, marks_image(message_id, redis.call('HGET', at.chat, 'kb') or ''), at.chat)
  log_change(at.changes, at.channel, version, c.changed, 'p', message_id, '', notify)
  c.changed = version
  touch_chat(at.chat, c, version, message_id)
end

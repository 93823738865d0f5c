--[[
@summary The one pinned message of a chat. Needs partition, message, chat, changes and control.
]]
-- Whether a record may be pinned: nil, or the name of the refusal.
local function unpinnable(record)
  local kind = read_header(record)[6]
  if kind == KIND_DELETED then return 'not_found' end
  if kind == KIND_SERVICE then return 'service' end
  return nil
end

-- What a member must be allowed to: channels have no right of their own for pins.
local function may_pin(member, c)
  return has_right(member, is_channel(c) and 'can_edit_messages' or 'can_pin_messages')
end

-- Makes a message the pinned one, or with '0' none: field, journal and change log, after the change `c.changed`. `at` names
-- the keys meta, journal, chat, changes and channel; `notify` is what the log says to those who look. The caller validated.
local function set_pin(at, c, version, chat, message_id, notify)
  local image = message_id == '0' and '' or cmsgpack.pack({tonumber(message_id)})
  journal_image(at, version, 'pin:' .. chat, image, at.chat)
  log_change(at.changes, at.channel, version, c.changed, 'p', message_id, '', notify)
  c.changed = version
  touch_chat(at.chat, c, version, message_id)
end

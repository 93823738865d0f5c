--[[
@summary The pinned message of a chat; there is at most one. Requires the includes partition, message, chat, changes and control.
]]
-- Returns the error if a record cannot be pinned, or nil.
local function unpinnable(record)
  local kind = read_header(record)[6]
  if kind == KIND_DELETED then return 'not_found' end
  if kind == KIND_SERVICE then return 'service' end
  return nil
end

-- Checks the right to pin. Channels have no separate right for pins.
local function may_pin(member, c)
  return has_right(member, is_channel(c) and 'can_edit_messages' or 'can_pin_messages')
end

-- Sets the pinned message, or removes it with '0': updates field, journal and change log. `at` contains the keys meta,
-- journal, chat, changes and channel; `notify` is passed to viewers in the log. The caller has validated the change.
local function set_pin(at, c, version, chat, message_id, notify)
  local image = message_id == '0' and '' or cmsgpack.pack({tonumber(message_id)})
  journal_image(at, version, 'pin:' .. chat, image, at.chat)
  log_change(at.changes, at.channel, version, c.changed, 'p', message_id, '', notify)
  c.changed = version
  touch_chat(at.chat, c, version, message_id)
end

--[[
@summary Checks permissions of members who are not administrators.
@err     not_permitted  what text
]]
-- Returns whether a member has a permission. Administrators have all permissions. `differing` lists, separated by
-- commas, the permissions whose value in this chat is not the default.
local function is_permitted(m, differing, name, default)
  if m.status == 'creator' or m.status == 'administrator' then return true end
  local differs = (',' .. differing .. ','):find(',' .. name .. ',', 1, true) ~= nil
  if differs == default then return false end
  if m.status ~= 'restricted' or m.rights[name] == true then return true end
  -- A restriction has no effect after it has ended.
  return m.ends and m.ends > 0 and m.ends <= tonumber(redis.call('TIME')[1])
end

-- Returns whether the member may send every kind of message. If so, the script need not parse the message.
local function has_all_kinds(m, c)
  return c.differing == '' and m.status ~= 'restricted' or is_channel(c)
end

-- Returns nil if the member may send this kind of message. Otherwise returns the kind.
local function unless_permitted(m, c, kind)
  local permissions = {
    photo = 'can_send_photos', video = 'can_send_videos', audio = 'can_send_audios', document = 'can_send_documents',
    voice = 'can_send_voice_notes', video_note = 'can_send_video_notes', poll = 'can_send_polls',
    animation = 'can_send_other_messages', sticker = 'can_send_other_messages', dice = 'can_send_other_messages',
  }
  if is_permitted(m, c.differing, permissions[kind] or 'can_send_messages', true) then return nil end
  return kind
end

local function kind_in(content)
  local _, behind = cmsgpack.unpack_one(content, (cmsgpack.unpack_one(content)))
  return behind.type
end

-- Returns nil if the member may send this message to the chat. Otherwise returns the kind of the message. `tail` is the
-- record without version and date. Parses the record only if the member or the chat has restrictions, so other sends
-- stay fast.
local function forbidden_kind(m, c, tail)
  if has_all_kinds(m, c) then return nil end
  local record = new_message('0', 0, tail)
  local header, at = read_header(record)
  local inline = bit.band(header[7], FLAG_INLINE) ~= 0
  if inline and not is_permitted(m, c.differing, 'can_send_other_messages', true) then return 'inline' end
  local has_kind = header[6] == KIND_MEDIA or header[6] == KIND_OBJECT
  return unless_permitted(m, c, has_kind and kind_in(read_segments(record, header, at)) or 'text')
end

-- Returns nil if this member may add these media to the message by an edit. Otherwise returns the kind of the media.
-- Edits of texts and captions need no permission (interface §5.12).
local function forbidden_media(m, c, what, content)
  if what ~= 'media' or has_all_kinds(m, c) then return nil end
  return unless_permitted(m, c, kind_in(content))
end

--[[
@summary Deciding an edit and making the new record, in the order of the refusals that clients rely on. Needs message.
]]
-- What a kind of edit needs to find: the kind of message, and the refusal of another.
local EDITED_KINDS = {
  text = {KIND_TEXT, 'no_text'}, caption = {KIND_MEDIA, 'no_caption'}, media = {KIND_MEDIA, 'no_media'},
}

-- A caption comes without the media that it is for: they stand behind the old one, and stay to the byte.
local function with_media_of(content, caption)
  local media_at = cmsgpack.unpack_one(content)
  return caption .. content:sub(media_at + 1)
end

-- Returns the new record, or nil and the name of the refusal. `may_edit_others` is a right of the editor at this instant.
-- `what` is text, caption, media (with their caption), or markup, which leaves the content as it is.
local function edited_record(record, version_of, now_ms, editor, may_edit_others, what, new_content, new_markup)
  local header, at = read_header(record)
  if header[6] == KIND_DELETED then return nil, 'not_found' end
  local own = ('%.0f'):format(header[5]) == editor
  local forwarded = bit.band(header[7], FLAG_FORWARDED) ~= 0
  if not (own or may_edit_others) or header[6] == KIND_SERVICE or (forwarded and what ~= 'markup') then
    return nil, 'cant_be_edited'
  end
  if now_ms - header[3] * 1000 > LIMITS.edit_age_ms_max then return nil, 'cant_be_edited' end
  local needed = EDITED_KINDS[what]
  if needed and header[6] ~= needed[1] then return nil, needed[2] end
  local content, markup, origin = read_segments(record, header, at)
  if what == 'markup' then new_content = content end
  if what == 'caption' then new_content = with_media_of(content, new_content) end
  if new_content == content and new_markup == markup then return nil, 'not_modified' end
  if now_ms - header[4] < LIMITS.edit_interval_ms_min then return nil, 'too_often' end
  header[2], header[4] = tonumber(version_of()), now_ms
  return write_record(header, new_content, new_markup, origin)
end

-- The record that this one answers or tells of, for the message as it is shown; '' when it is not here.
local function replied_record(record, message_prefix)
  local header, at = read_header(record)
  local _, _, origin = read_segments(record, header, at)
  if origin == '' then return '' end
  local _, fields = cmsgpack.unpack_one(origin)
  local id = fields.reply or (fields.service and fields.service.pinned)
  if not id then return '' end
  return redis.call('GET', message_prefix .. ('%.0f'):format(id)) or ''
end

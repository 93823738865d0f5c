--[[
@summary Validates an edit and builds the new record. The checks run in the order that clients rely on. Requires the includes message.
]]
-- The message kind that each edit requires, and the error for other kinds.
local EDITED_KINDS = {
  text = {KIND_TEXT, 'no_text'}, caption = {KIND_MEDIA, 'no_caption'}, media = {KIND_MEDIA, 'no_media'},
}

-- A new caption comes without media. The media bytes after the old caption are kept unchanged.
local function with_media_of(content, caption)
  local media_at = cmsgpack.unpack_one(content)
  return caption .. content:sub(media_at + 1)
end

-- Returns the new record, or nil and the error. `may_edit_others` is the editor's current right. `what` is text,
-- caption, media (with their caption) or markup, which keeps the content.
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

-- Returns the record of the replied or pinned message, which the API shows inside this one; '' if it is not in Redis.
local function replied_record(record, message_prefix)
  local header, at = read_header(record)
  local _, _, origin = read_segments(record, header, at)
  if origin == '' then return '' end
  local _, fields = cmsgpack.unpack_one(origin)
  local id = fields.reply or (fields.service and fields.service.pinned)
  if not id then return '' end
  return redis.call('GET', message_prefix .. ('%.0f'):format(id)) or ''
end

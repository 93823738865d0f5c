--[[
@summary Validates an edit and builds the new record. Clients rely on the order of these checks.
@key     granted  {NN}:granted_edits:<chat>:<message_id>  STRING
@err     not_found
@err     cant_be_edited
@err     no_text
@err     no_caption
@err     no_media
@err     no_live
@err     wrong_period
@err     not_modified
@err     too_often
]]
-- Maps each kind of edit to the message kind that it requires, and to the error if the message has another kind.
local EDITED_KINDS = {
  text = {KIND_TEXT, 'no_text'}, caption = {KIND_MEDIA, 'no_caption'}, media = {KIND_MEDIA, 'no_media'},
  location = {KIND_OBJECT, 'no_live'},
}

-- An edit of a caption contains no media. Appends the media of the old content to the new caption.
local function with_media_of(content, caption)
  local media_at = cmsgpack.unpack_one(content)
  return caption .. content:sub(media_at + 1)
end

-- In the content of a live location, the live part follows the packed object. Returns the offset of the live part, its
-- period, and its end (both in seconds). Returns nil if there is no live part.
local function live_part(content)
  local live_at = cmsgpack.unpack_one(content, (cmsgpack.unpack_one(content)))
  if live_at < 0 then return nil end
  local _, live = cmsgpack.unpack_one(content, live_at)
  return live_at, live[1], live[2]
end

-- Returns the new content of a live location, or nil and the error. If `location` is empty, the live location stops. If
-- `location` has a live part, the new period comes from that part. Otherwise the period stays the same.
local function moved_location(content, location, now_s)
  local at, period, ends = live_part(content)
  if not at then return nil, 'no_live' end
  if ends <= now_s then return nil, 'cant_be_edited' end
  if location == '' then return content:sub(1, at) .. cmsgpack.pack({period, 0}) end
  local new_at, new_period = live_part(location)
  if not new_at then return location .. content:sub(at + 1) end
  local new_ends = ends - period + new_period
  if new_period ~= LIMITS.live_period_s_forever
    and (new_ends > ends + LIMITS.live_extension_s_max or new_ends > now_s + LIMITS.live_remaining_s_max) then
    return nil, 'wrong_period'
  end
  return location:sub(1, new_at) .. cmsgpack.pack({new_period, new_ends})
end

-- Each press of a button allows the bot one extra edit. Uses up one extra edit, or returns false if none is left. Does
-- not extend the time in which the other extra edits can be used.
local function use_granted_edit(key)
  local unused = tonumber(redis.call('GET', key) or 0)
  if unused > 0 then redis.call('DECR', key) end
  return unused > 0
end

-- Returns the new record and its version, or nil and the error. `may_edit_others` says whether the editor may edit
-- messages of others. `by_way` says whether the editor is the bot of an inline message. Nobody else may edit an inline
-- message, not even its sender. `what` is text, caption, media (with their caption), location or markup. An edit of the
-- markup keeps the content. A location can be edited while it is live, at any age. `pending` is a pending edit or nil.
-- If there is a pending edit, the new edit changes the pending edit, not the record.
local function edited_record(record, meta, now_ms, editor, may_edit_others, by_way, what, new_content, new_markup,
  granted_key, pending)
  local header, at = read_header(record)
  if header[6] == KIND_DELETED then return nil, 'not_found' end
  local content, markup, origin = read_segments(record, header, at)
  if (by_way or false) ~= is_inline(header) then return nil, 'cant_be_edited' end
  local own
  if by_way then own = via_bot(header, origin) == editor else own = ('%.0f'):format(header[5]) == editor end
  local forwarded = bit.band(header[7], FLAG_FORWARDED) ~= 0
  if not (own or may_edit_others) or header[6] == KIND_SERVICE or (forwarded and what ~= 'markup') then
    return nil, 'cant_be_edited'
  end
  if what ~= 'location' and now_ms - header[3] * 1000 > LIMITS.edit_age_ms_max then return nil, 'cant_be_edited' end
  local needed = EDITED_KINDS[what]
  if needed and header[6] ~= needed[1] then return nil, needed[2] end
  if pending then content, markup = pending.content, pending.markup end
  if what == 'markup' then new_content = content end
  if what == 'caption' then new_content = with_media_of(content, new_content) end
  if what == 'location' then
    local moved, refusal = moved_location(content, new_content, math.floor(now_ms / 1000))
    if not moved then return nil, refusal end
    new_content = moved
  end
  if new_content == content and new_markup == markup then return nil, 'not_modified' end
  local too_often = now_ms - header[4] < LIMITS.edit_interval_ms_min
  if too_often and not (own and use_granted_edit(granted_key)) then return nil, 'too_often' end
  local version = next_version(meta)
  header[2], header[4] = tonumber(version), now_ms
  return write_record(header, new_content, new_markup, origin), version
end

-- If the message is a reply, returns the record of the message that it replies to. If it is a service message about a
-- pin, returns the record of the pinned message. Returns '' if there is no such record in Redis.
local function replied_record(record, message_prefix)
  local header, at = read_header(record)
  local _, _, origin = read_segments(record, header, at)
  if origin == '' then return '' end
  local _, fields = cmsgpack.unpack_one(origin)
  local id = fields.reply or (fields.service and fields.service.pinned)
  if not id then return '' end
  return redis.call('GET', message_prefix .. ('%.0f'):format(id)) or ''
end

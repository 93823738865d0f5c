--[[
@summary Stores pending edits: accepted edits that wait until their message may be edited again (decision 0066).
@key     pending    {NN}:pending_edits  HASH  chat:message -> edit; owner:<id> -> bytes; all -> bytes
@key     edits_due  {NN}:edits_due      ZSET  chat:message -> ms
]]
-- Only the newest edit of a message is pending. It is a msgpack array: token, editor, version of the message, content,
-- keyboard, editor's profile (JSON), whether the editor is the bot of an inline message, owner of the bot. A pending edit
-- belongs to one version of its message. Each change of the message raises the version. A pending edit of an older
-- version is outdated, so an older text never replaces a newer one, and other scripts need not remove pending edits.

-- If the edit of a request became pending, the stored answer of this request ends with these bytes.
local PENDING = ' pending'

-- Returns the functions for the pending edit of one message. `place` is `chat:message`. The functions are created on
-- request, because most edits do not need them.
local function pending_edit_of(pending, due, place)
  local own = {}

  -- Returns the pending edit. Returns nil if no edit is pending, or if the message has changed since the edit was
  -- accepted. If `token` is given, returns only the edit with this token.
  function own.read(record, token)
    local header = read_header(record)
    local packed = header[6] == KIND_TEXT and redis.call('HGET', pending, place)
    if not packed then return nil end
    local own_token, _, version, content, markup = unpack(cmsgpack.unpack(packed))
    if token and token ~= own_token then return nil end
    return version == header[2] and {content = content, markup = markup} or nil
  end

  -- Returns the record as it will be after the pending edit, or the unchanged record if no edit is pending.
  function own.apply_to(record, edit, now_ms)
    if not edit then return record end
    local header, at = read_header(record)
    local _, _, origin = read_segments(record, header, at)
    header[4] = now_ms
    return write_record(header, edit.content, edit.markup, origin)
  end

  -- Returns the milliseconds until the pending edit is due. Returns nil if the content of `record` is not the content
  -- of the pending edit.
  function own.wait(record, now_ms)
    local edit = own.read(record)
    local header, at = read_header(record)
    if not edit or edit.content ~= read_segments(record, header, at) then return nil end
    return ('%.0f'):format(math.max(0, redis.call('ZSCORE', due, place) - now_ms))
  end

  -- Returns the name of the field that counts the bytes of the owner's pending edits. An edit that an older release
  -- stored has no owner, so its bytes count for its editor.
  local function sum_of(edit)
    return edit[8] and 'owner:' .. edit[8] or edit[2]
  end

  -- Adds an edit's size to the byte counts of its owner and of the partition (sign 1), or subtracts it (sign -1). An
  -- edit counts as at least 1 KiB, so the byte limits also limit the number of edits.
  local function count(edit, packed, sign)
    for _, field in ipairs({sum_of(edit), 'all'}) do
      local sum = redis.call('HINCRBY', pending, field, sign * (#packed + LIMITS.pending_edit_overhead_bytes))
      if sum == 0 then redis.call('HDEL', pending, field) end
    end
  end

  -- Removes the pending edit. If `token` is given, removes only the edit with this token.
  function own.drop(token)
    local packed = redis.call('HGET', pending, place)
    local edit = packed and cmsgpack.unpack(packed)
    if not edit or (token and token ~= edit[1]) then return end
    redis.call('HDEL', pending, place)
    redis.call('ZREM', due, place)
    count(edit, packed, -1)
  end

  -- Makes an edit pending, and replaces any earlier pending edit. Returns the record as it will be after the edit, and
  -- the milliseconds until the edit is due. Returns nil if the owner or the partition has too many pending edits.
  -- `edit` contains the fields token, editor, content, markup, profile, by_way and owner.
  function own.replace(record, now_ms, edit)
    local header = read_header(record)
    local made = {edit.token, edit.editor, header[2], edit.content, edit.markup, edit.profile, edit.by_way or false, edit.owner}
    local packed, sum = cmsgpack.pack(made), sum_of(made)
    local used = redis.call('HMGET', pending, sum, 'all', place)
    local size = #packed + LIMITS.pending_edit_overhead_bytes
    local freed = used[3] and #used[3] + LIMITS.pending_edit_overhead_bytes or 0
    -- Replacing the pending edit of another owner frees no bytes of this owner.
    local is_own = used[3] and sum_of(cmsgpack.unpack(used[3])) == sum
    if (used[1] or 0) + size - (is_own and freed or 0) > LIMITS.pending_edits_bytes_per_owner_max then return nil end
    if (used[2] or 0) + size - freed > LIMITS.pending_edits_bytes_max then return nil end
    own.drop()
    redis.call('HSET', pending, place, packed)
    count(made, packed, 1)
    local due_ms = header[4] + LIMITS.edit_interval_ms_min
    redis.call('ZADD', due, ('%.0f'):format(due_ms), place)
    return own.apply_to(record, edit, now_ms), ('%.0f'):format(due_ms - now_ms)
  end

  return own
end

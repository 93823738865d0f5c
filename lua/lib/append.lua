--[[
@summary Appends messages to a chat.
]]
-- Returns the number of the partition's next post. Skips a range of numbers for each raise of the incarnation, because
-- Redis may have lost posts with these numbers. If Redis does not know the incarnation of the last post, counts all
-- raises so far.
local function next_post_number(meta, version)
  local m = redis.call('HMGET', meta, 'post', 'post_inc')
  local inc = incarnation_of(version)
  local step = 1 + (inc - (m[2] or 0)) * LIMITS.incarnation_sequence_skip
  local number = tonumber(m[1] or 0) + step
  redis.call('HSET', meta, 'post', ('%.0f'):format(number), 'post_inc', inc)
  return number
end

local function new_post(at, version, number, post, chat, message_id)
  redis.call('HSET', at.post_prefix .. post, 'c', chat, 'm', message_id, 'v', version, 'u', 0)
  journal_image(at, version, ('post:%s:%.0f'):format(at.partition, number), cmsgpack.pack({chat, tonumber(message_id)}),
    at.post_prefix .. post)
end

-- Appends a message: writes the sequence, the record, the journal and the change log. `at` contains the keys meta,
-- journal, changes and channel, and the key prefix of the chat's messages. If `at` also contains post_prefix and
-- partition, the message becomes a post. If `version` is nil, the function allocates a version. The caller must then
-- call touch_chat. Returns the message id, the record, its version and the post id ('0' if there is none).
local function append_message(at, c, chat, seconds, tail, version)
  local post_version
  if at.post_prefix then
    version, post_version = unpack(next_versions(at.meta, 2))
  else
    version = version or next_version(at.meta)
  end
  local id = next_message_id(c, version)
  local record = new_message(version, seconds, tail)
  local number, post = nil, '0'
  if at.post_prefix then
    number = next_post_number(at.meta, version)
    post = ('%.0f'):format(number * LIMITS.partitions_max + tonumber(at.partition))
    record = record .. cmsgpack.pack(tonumber(post))
  end
  redis.call('SET', at.message_prefix .. id, record)
  journal_image(at, version, 'msg:' .. chat .. ':' .. id, record)
  if number then new_post(at, post_version, number, post, chat, id) end
  log_change(at.changes, at.channel, version, c.changed, 'n', id)
  c.changed = version
  return id, record, version, post
end

-- Appends a message that is not a post. Unlike append_message, this function writes the last version and the byte count
-- of the journal in a single command. A combined run writes both values only once, after all its calls. `at` also
-- contains both values as `closed` returned them. This function stores the new values there. Between `closed` and the
-- last append_next, the script must not allocate versions or write to the journal by other functions.
local function append_next(at, c, chat, seconds, tail)
  local version, before = ('%.0f'):format(at.version + 1), at.journaled
  local id = next_message_id(c, version)
  local record, entity = new_message(version, seconds, tail), 'msg:' .. chat .. ':' .. id
  at.version, at.journaled = version, ('%.0f'):format(before + #entity + #record)
  if combined then counters.version, counters.journaled, counters.changed = version, at.journaled, true end
  if not combined then redis.call('HSET', at.meta, 'ver', version, 'jw', at.journaled) end
  redis.call('SET', at.message_prefix .. id, record)
  redis.call('XADD', at.journal, version .. '-' .. before, 'k', entity, 'i', record)
  log_change(at.changes, at.channel, version, c.changed, 'n', id)
  c.changed = version
  return id, record
end

--[[
@summary Taking messages out of a chat for good. Needs partition, message, chat, changes, control, pin and post.
]]
-- Leaves a tombstone and ends the post (nil for none): record and journal. `header` is that of the record, whose date tells where the
-- message lies in Postgres. `at` names the
-- keys meta and journal and the prefixes of messages, posts and who acted.
local function bury_message(at, chat, message_id, header, post)
  local version = next_version(at.meta)
  local key = at.message_prefix .. message_id
  local image = tombstone(header, version)
  redis.call('SET', key, image)
  redis.call('DEL', key .. ':ticket')
  journal_image(at, version, 'msg:' .. chat .. ':' .. message_id, image)
  end_post(post, at, chat, message_id)
  return version
end

-- Buries a message and tells so in the change log: `at` names the keys changes and channel as well. `header` and where the segments
-- begin are those of its record. The caller ends with close_removal.
local function remove_message(at, c, chat, message_id, header, segments_at)
  local post = is_channel(c) and post_of(at.message_prefix .. message_id, header, segments_at) or nil
  local version = bury_message(at, chat, message_id, header, post)
  log_change(at.changes, at.channel, version, c.changed, 'd', message_id)
  c.changed = version
  return version
end

-- Marks the chat as changed by the last removal, and unpins what was removed. `at` names the chat's key as well.
local function close_removal(at, c, chat, version, unpin)
  touch_chat(at.chat, c, version)
  if unpin then set_pin(at, c, next_version(at.meta), chat, '0', '') end
end

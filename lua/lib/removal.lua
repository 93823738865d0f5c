--[[
@summary Deletes messages from a chat permanently.
@err     not_found
@err     cant_be_deleted
]]
-- Replaces a message with a tombstone, deletes the message's post if it has one, and journals both changes. `header` is
-- the header of the message's record. The date in the header determines the Postgres partition of the message. `at`
-- contains the keys meta and journal, and the key prefixes of messages, posts and actors.
local function write_tombstone(at, chat, message_id, header, post)
  local version = next_version(at.meta)
  local key = at.message_prefix .. message_id
  local image = tombstone(header, version)
  redis.call('SET', key, image)
  redis.call('DEL', key .. ':ticket')
  journal_image(at, version, 'msg:' .. chat .. ':' .. message_id, image)
  end_post(post, at, chat, message_id)
  return version
end

-- Deletes a message and adds the deletion to the change log. `at` also contains the keys changes and channel. `header`
-- and `segments_at` come from read_header. The caller must call close_removal afterwards.
local function remove_message(at, c, chat, message_id, header, segments_at)
  local post = is_channel(c) and post_of(at.message_prefix .. message_id, header, segments_at) or nil
  local version = write_tombstone(at, chat, message_id, header, post)
  log_change(at.changes, at.channel, version, c.changed, 'd', message_id)
  c.changed = version
  return version
end

-- Records the last removal as the chat's latest change. If `unpin` is true, also unpins the pinned message. `at` must
-- also contain the chat's key.
local function close_removal(at, c, chat, version, unpin)
  touch_chat(at.chat, c, version)
  if unpin then set_pin(at, c, next_version(at.meta), chat, '0', '') end
end

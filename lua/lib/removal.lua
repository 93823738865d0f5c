--[[
@summary Taking messages out of a chat for good. Needs partition, message, chat, changes, control, pin and post.
]]
-- Leaves a tombstone and ends the post: record, journal and change log. `at` names the keys meta, journal, changes and
-- channel and the prefixes of messages, posts and who acted. The caller ends with close_removal.
local function remove_message(at, c, chat, message_id, record)
  local version = next_version(at.meta)
  local key = at.message_prefix .. message_id
  redis.call('SET', key, tombstone(read_header(record), version))
  redis.call('DEL', key .. ':ticket')
  journal_image(at.journal, version, 'msg:' .. chat .. ':' .. message_id, '')
  if is_channel(c) then end_post(post_of(record), at, chat, message_id) end
  log_change(at.changes, at.channel, version, c.changed, 'd', message_id)
  c.changed = ('%.0f'):format(version)
  return version
end

-- Marks the chat as changed by the last removal, and unpins what was removed. `at` names the chat's key as well.
local function close_removal(at, c, chat, version, unpin)
  touch_chat(at.chat, c, version)
  if unpin then set_pin(at, c, chat, '0', '') end
end

--[[
@summary Finds the message that a new message replies to.
@err     reply_missing  ticket text
@err     reply_not_found
]]
-- Returns the record of the message `reply_to`, or false if the new message is not a reply. If the new message must not
-- reply to that message, returns nil and the error that the script must return.
local function read_reply(c, message_prefix, reply_to, token, inc)
  if reply_to == '' then return false end
  if tonumber(reply_to) > c.seq then return nil, refuse('reply_not_found') end
  local key = message_prefix .. reply_to
  local reply = redis.call('GET', key)
  if not reply then return nil, refuse('reply_missing', leave_ticket(key .. ':ticket', token, inc)) end
  if read_header(reply)[6] == KIND_DELETED then return nil, refuse('reply_not_found') end
  return reply
end

-- Returns the record of the message `reply_to`, for a send that was already applied. It is not an error if that message
-- was changed or deleted since then.
local function present_reply(message_prefix, reply_to)
  return reply_to ~= '' and redis.call('GET', message_prefix .. reply_to)
end

--[[
@summary Finds the message that a new message replies to. Requires the includes message.
]]
-- Returns the record of the message `reply_to`, or false if there is none. A second value is the script's error reply.
local function read_reply(c, message_prefix, reply_to, token)
  if reply_to == '' then return false end
  if tonumber(reply_to) > c.seq then return nil, refuse('reply_not_found') end
  local key = message_prefix .. reply_to
  local reply = redis.call('GET', key)
  if not reply then return nil, refuse('reply_missing', leave_ticket(key .. ':ticket', token)) end
  if read_header(reply)[6] == KIND_DELETED then return nil, refuse('reply_not_found') end
  return reply
end

-- Returns the reply for a request that was already applied. Changes to the message since are no error.
local function present_reply(message_prefix, reply_to)
  return reply_to ~= '' and redis.call('GET', message_prefix .. reply_to)
end

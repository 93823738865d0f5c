--[[
@summary Reads and writes message records. A record is a header, followed by content, keyboard and origin.
         The header is a msgpack array. Scripts copy the other three segments without parsing them.
@key     message         {NN}:msg:<chat>:<message_id>         STRING
@key     message_ticket  {NN}:msg:<chat>:<message_id>:ticket  STRING
@derived message         {NN}:msg:<chat>:<message_id>         STRING
@derived sibling         {NN}:msg:<chat>:<message_id>         STRING
@arg     token           text  fill ticket for records missing in Redis
@err     message_missing  ticket text
]]
-- The content is a map. In a media message, the media follow this map. The origin is a map of fields that never change.
-- In a channel, the post id follows the origin. The fields of the header are (1) the format, (2) the version, (3) the
-- date in s, (4) the time of the last edit in ms, (5) the sender, (6) the kind, (7) the flags, (8) the length of the
-- content in bytes, and (9) the length of the keyboard in bytes.
local KIND_DELETED, KIND_TEXT, KIND_SERVICE, KIND_MEDIA, KIND_OBJECT = 0, 1, 2, 3, 4
local FLAG_FORWARDED, FLAG_INLINE = 4, 8

-- Builds a new record. `tail` is the packed record without version and date.
local function new_message(version, date, tail)
  return '\153' .. cmsgpack.pack(1, tonumber(version), date) .. tail
end

-- Returns the header and the offset at which the content begins.
local function read_header(record)
  local at, header = cmsgpack.unpack_one(record)
  return header, at
end

-- Reads only the header (up to 50 bytes) of a message in Redis. Returns nil if the message is missing.
local function header_of(key)
  local head = redis.call('GETRANGE', key, 0, 63)
  if head == '' then return nil end
  return read_header(head)
end

local function read_segments(record, header, at)
  if at < 0 then return '', '', '' end
  local markup_at = at + header[8]
  local origin_at = markup_at + header[9]
  return record:sub(at + 1, markup_at), record:sub(markup_at + 1, origin_at), record:sub(origin_at + 1)
end

-- Returns whether a person sent the message as a result of an inline query.
local function is_inline(header)
  return bit.band(header[7], FLAG_INLINE) ~= 0
end

-- Returns the id of the bot whose inline result this message is, or nil for other messages. `origin` is the last
-- segment of the message's record.
local function via_bot(header, origin)
  if not is_inline(header) then return nil end
  local _, fields = cmsgpack.unpack_one(origin)
  return ('%.0f'):format(fields.via.id)
end

local function write_record(header, content, markup, origin)
  header[8], header[9] = #content, #markup
  return cmsgpack.pack(header) .. content .. markup .. origin
end

local function tombstone(header, version)
  return cmsgpack.pack({1, tonumber(version), header[3], 0, header[5], KIND_DELETED, 0, 0, 0})
end

-- Creates a ticket for loading the missing key from Postgres. Concurrent calls that miss the same key share one ticket.
-- A change removes the ticket. Redis may lose such a removal, so the ticket also becomes invalid when the incarnation
-- is raised.
local function leave_ticket(key, token, inc)
  return inc .. ' ' .. (redis.call('SET', key, token, 'NX', 'GET', 'PX', LIMITS.fill_ticket_ttl_ms) or token)
end

-- Returns whether a ticket from `leave_ticket` is valid.
local function has_ticket(key, ticket, inc)
  return ticket == inc .. ' ' .. (redis.call('GET', key) or '')
end

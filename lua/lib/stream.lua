--[[
@summary Reading a stream within bounds: while one script copies megabytes, Redis serves nobody else.
]]
local function entry_bytes(fields)
  local n = 0
  for i = 2, #fields, 2 do n = n + #fields[i] end
  return n
end

-- The entries between two ids, at most `count`, and their bytes. It stops once it has LIMITS.script_read_bytes_max, after one
-- entry at least. The third value tells whether there may be more.
local function read_within(stream, from, to, count)
  local entries, bytes, piece = {}, 0, 8
  repeat
    local asked = math.min(piece, count - #entries)
    local rows = redis.call('XRANGE', stream, from, to, 'COUNT', asked)
    for _, entry in ipairs(rows) do
      entries[#entries + 1] = entry
      bytes = bytes + entry_bytes(entry[2])
    end
    if #rows < asked then return entries, bytes, false end
    from = '(' .. rows[#rows][1]
    -- As many as fit by the mean size so far.
    local fitting = math.floor((LIMITS.script_read_bytes_max - bytes) / (bytes / #entries))
    piece = math.max(1, math.min(2 * piece, fitting))
  until #entries >= count or bytes >= LIMITS.script_read_bytes_max
  return entries, bytes, true
end

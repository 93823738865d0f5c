--[[
@summary Reads streams within size limits, because Redis cannot serve other clients while a script copies megabytes.
]]
local function entry_bytes(fields)
  local n = 0
  for i = 2, #fields, 2 do n = n + #fields[i] end
  return n
end

-- Returns the entries between two ids (at most `count`), their bytes, and whether there may be more. Stops after
-- LIMITS.script_read_bytes_max bytes, but returns at least one entry.
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
    -- Estimates how many more entries fit into the byte limit, from the average size of an entry so far.
    local fitting = math.floor((LIMITS.script_read_bytes_max - bytes) / (bytes / #entries))
    piece = math.max(1, math.min(2 * piece, fitting))
  until #entries >= count or bytes >= LIMITS.script_read_bytes_max
  return entries, bytes, true
end

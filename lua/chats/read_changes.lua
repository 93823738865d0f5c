--[[
@summary Reads the changes of several chats after a version, for an event stream. All chats are in one partition.
@why     Versions are ordered within a partition, so the next read starts at the returned version.
@repeatable The script only reads, and extends the life of change logs.
@flag    allow-oom
@key     meta     {NN}:meta                          HASH
@derived chat     {NN}:chat:<chat>                   HASH
@derived message  {NN}:msg:<chat>:<message_id>       STRING
@arg     after    int     version after which to read changes; 0 only returns the version to start from
@arg     keep     flag    create the chats' change logs, or extend their life
@args    chats    text
@ok      version  int     the partition's current version
@ok      rows     raw     one row per change: chat, kind, id, version, to, extra, record, profile; kind gap when changes
                          are missing from the log, or are too many or too large for one call
]]
local ver = redis.call('HGET', meta_key, 'ver') or '0'
local rows = {}
local from = tonumber(after)
local bytes = 0

-- If there are more changes than one script may return, reports the remaining changes as a gap.
local function is_full()
  return #rows >= LIMITS.script_entries_max or bytes >= LIMITS.script_read_bytes_max
end

for _, chat in ipairs(chats) do
  local c = redis.call('HMGET', chat_key(chat), 'c', 'p')
  local missed = false
  if from > 0 and c[1] and tonumber(c[1]) > from then
    local log = is_full() and {} or redis.call('XRANGE', changes_key(chat), ('(%.0f-0'):format(from), '+')
    local known, seen = #rows, from
    missed = #log == 0
    for _, entry in ipairs(log) do
      if is_full() then missed = true break end
      local version, f = entry[1]:match('^%d+'), entry[2]
      -- Each entry contains the version of the chat's previous change. If the reader has not seen the previous change,
      -- reports a gap, because the log was created later and lacks that change.
      if tonumber(f[2]) > seen then missed = true end
      seen = tonumber(version)
      local record = ''
      if f[4] == 'n' or f[4] == 'e' or f[4] == 'p' then record = redis.call('GET', message_key(chat .. ':' .. f[6])) or '' end
      rows[#rows + 1] = {chat, f[4], f[6], version, f[8], f[10], record, c[2]}
      bytes = bytes + #record + #f[10]
    end
    if missed then
      for i = #rows, known + 1, -1 do rows[i] = nil end
      rows[#rows + 1] = {chat, 'gap', '', ver, '', '', '', c[2]}
    end
  end
  if keep or missed then keep_log(changes_key(chat), LIMITS.changes_log_ttl_ms) end
end
return ok(ver, rows)

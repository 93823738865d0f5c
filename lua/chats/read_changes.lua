--[[
@summary Reads what changed in some chats of one partition after a version, for an event stream.
@why     The versions of one partition are one order: the version read with the changes is where the next read begins.
@flag    no-writes
@key     meta     {NN}:meta                          HASH
@derived changes  {NN}:changes:<chat>                STREAM
@derived chat     {NN}:chat:<chat>                   HASH
@derived message  {NN}:msg:<chat>:<message_id>       STRING
@arg     after    int     version; 0 asks only where to begin
@args    chats    text
@ok      version  int     of the partition at this instant
@ok      rows     raw     a row a change: chat, kind, id, version, to, extra, record, profile; kind gap where the log does not reach back
]]
local ver = redis.call('HGET', meta_key, 'ver') or '0'
local rows = {}
if after == '0' then return ok(ver, rows) end
local from = tonumber(after)
for _, chat in ipairs(chats) do
  local c = redis.call('HMGET', chat_key(chat), 'c', 'p')
  if c[1] and tonumber(c[1]) > from then
    local log = redis.call('XRANGE', changes_key(chat), ('(%.0f-0'):format(from), '+')
    if #log == 0 or tonumber(log[1][2][2]) > from then
      rows[#rows + 1] = {chat, 'gap', '', ver, '', '', '', c[2]}
    else
      for _, entry in ipairs(log) do
        local f = entry[2]
        local record = ''
        if f[4] == 'n' or f[4] == 'e' or f[4] == 'p' then record = redis.call('GET', message_key(chat .. ':' .. f[6])) or '' end
        rows[#rows + 1] = {chat, f[4], f[6], entry[1]:match('^%d+'), f[8], f[10], record, c[2]}
      end
    end
  end
end
return ok(ver, rows)

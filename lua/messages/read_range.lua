--[[
@summary Returns a chat's newest messages with ids below a given id, newest first.
         Returns null for messages that only Postgres has.
@flag    no-writes
@key     chat     {NN}:chat:<chat>               HASH
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@arg     before   int     message id below which to read; 0 starts at the newest
@arg     limit    int
@arg     bytes    int     stop once the rows read have this many bytes
@ok      newest   int     the chat's last message id
@ok      peer     bytes   profile of the user or the chat
@ok      first    int     id of the first row; later rows have descending ids
@ok      rows     raw     records, at least one if any id is in range; null where only Postgres has it
@ok      flushed  int?    up to this version, Postgres has everything that is missing here; null if unknown
@err     chat_missing
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local c = redis.call('HMGET', chat_key, 's', 'p')
if not c[1] then return refuse('chat_missing') end
local newest = tonumber(c[1])
local first = tonumber(before) - 1
if first < 0 or first > newest then first = newest end
local rows = {}
local read = 0
for id = first, math.max(1, first - tonumber(limit) + 1), -1 do
  if read >= tonumber(bytes) then break end
  local record = redis.call('GET', message_key(id))
  rows[#rows + 1] = record
  read = read + (record and #record or 0)
end
-- Returns the flushed version only if it is from the current incarnation. Redis may have lost a later flushed version
-- of an earlier incarnation. The first flush under the current incarnation records a new version.
local m = redis.call('HMGET', meta_key, 'fl', 'ver')
local flushed = m[1] and m[2] and incarnation_of(tonumber(m[1])) == incarnation_of(tonumber(m[2])) and m[1] or false
return ok(newest, c[2], first, rows, flushed)

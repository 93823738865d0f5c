--[[
@summary Reads messages of a chat below an id, newest first, as far as they are hot.
@include partition
@include message
@flag    no-writes
@key     meta     {NN}:meta                      HASH
@key     chat     {NN}:chat:<chat>               HASH
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@arg     run      text
@arg     before   int     exclusive; 0 for the newest
@arg     limit    int
@arg     bytes    int     no row is read once those before have so many
@ok      newest   int     the chat's last message id
@ok      peer     bytes   profile of the user or the chat
@ok      first    int     id of the first row; the rows count down from it
@ok      rows     raw     records, at least one where there are ids; null where Postgres must be asked
@ok      flushed  int?    Postgres has all that is not here, up to this version; null where that is not known
@err     stale_run
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
-- Before the first flush under this incarnation, what a former Redis had settled is not known.
local m = redis.call('HMGET', meta_key, 'fl', 'ver')
local flushed = m[1] and m[2] and incarnation_of(tonumber(m[1])) == incarnation_of(tonumber(m[2])) and m[1] or false
return ok(newest, c[2], first, rows, flushed)

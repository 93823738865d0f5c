--[[
@summary Returns the whole records or only the first bytes of the given messages that are in Redis.
@flag    no-writes
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@arg     bytes    int     how many bytes of each record to read; 0 for all
@args    ids      text
@ok      rows     raw     records in the order of the ids; null where only Postgres has it
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local rows = {}
for i, id in ipairs(ids) do
  local row = redis.call('GETRANGE', message_key(id), 0, bytes - 1)
  rows[i] = row ~= '' and row
end
return ok(rows)

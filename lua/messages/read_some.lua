--[[
@summary Reads messages of a chat by their ids, as far as they are hot.
@flag    no-writes
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@args    ids      text
@ok      rows     raw     records, in the order of the ids; null where Postgres must be asked
]]
local rows = {}
for i, id in ipairs(ids) do rows[i] = redis.call('GET', message_key(id)) end
return ok(rows)

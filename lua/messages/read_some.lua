--[[
@summary Reads messages of a chat by id, if in Redis.
@include partition
@flag    no-writes
@key     meta     {NN}:meta                      HASH
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@arg     run      text
@args    ids      text
@ok      rows     raw     records in the order of the ids; null where only Postgres has it
@err     stale_run
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local rows = {}
for i, id in ipairs(ids) do rows[i] = redis.call('GET', message_key(id)) end
return ok(rows)

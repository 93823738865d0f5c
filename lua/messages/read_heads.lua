--[[
@summary Reads the heads of messages by id, if in Redis: enough to count them.
@include partition
@flag    no-writes
@key     meta     {NN}:meta                      HASH
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@arg     run      text
@args    ids      text
@ok      heads    raw     the first bytes of each record, in the order of the ids; null where only Postgres has it
@err     stale_run
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local heads = {}
for i, id in ipairs(ids) do
  local head = redis.call('GETRANGE', message_key(id), 0, LIMITS.message_head_bytes_max - 1)
  heads[i] = head ~= '' and head
end
return ok(heads)

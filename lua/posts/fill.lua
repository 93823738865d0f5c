--[[
@summary Stores a post that was loaded from Postgres because Redis lacked it.
@why     A fill needs its ticket and an absent key, so it never restores an old state (architecture, Journal).
@repeatable A ticket can be used only once.
@flag    allow-oom
@key     post    {NN}:post:<post>           HASH
@key     ticket  {NN}:post:<post>:ticket    STRING
@arg     token   text
@arg     ttl_ms  int
@args    fields  bytes   names and values of the record
@ok      filled  flag
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if not has_ticket(ticket_key, token, inc) or redis.call('EXISTS', post_key) == 1 then return ok(0) end
for i = 1, #fields, 2 do redis.call('HSET', post_key, fields[i], fields[i + 1]) end
-- Starts a new generation of reactions. All older generations are already in Postgres.
redis.call('HSET', post_key, 'g', next_version(meta_key))
redis.call('PEXPIRE', post_key, ttl_ms)
redis.call('DEL', ticket_key)
return ok(1)

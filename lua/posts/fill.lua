--[[
@summary Stores a post read from Postgres that was missing in Redis.
@why     A fill needs its ticket and an absent key, so that it never restores an old state (architecture, Journal).
@repeatable A ticket is used once.
@include partition
@flag    allow-oom
@key     meta    {NN}:meta                  HASH
@key     post    {NN}:post:<post>           HASH
@key     ticket  {NN}:post:<post>:ticket    STRING
@arg     run     text
@arg     token   text
@arg     ttl_ms  int
@args    fields  bytes   names and values of the record
@ok      filled  flag
@err     stale_run
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
if redis.call('GET', ticket_key) ~= token or redis.call('EXISTS', post_key) == 1 then return ok(0) end
for i = 1, #fields, 2 do redis.call('HSET', post_key, fields[i], fields[i + 1]) end
-- Start with an unused generation: the contents of older ones are already in Postgres.
redis.call('HSET', post_key, 'g', next_version(meta_key))
redis.call('PEXPIRE', post_key, ttl_ms)
redis.call('DEL', ticket_key)
return ok(1)

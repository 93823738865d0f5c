--[[
@summary Stores a poll that was read from Postgres because Redis lacked it.
@why     A fill needs its ticket and an absent key, so it never restores an old state (architecture, Journal).
@repeatable A ticket can be used only once.
@flag    allow-oom
@key     poll     {NN}:poll:<poll>  HASH
@key     poll_ticket  {NN}:poll:<poll>:ticket  STRING
@key     due      {NN}:polls_due  ZSET     poll -> ms
@arg     token    text
@arg     ttl_ms   int
@arg     poll     text
@arg     closes_ms int    time at which an open poll closes; 0 for never
@args    fields   bytes   names and values of the record in Redis
@ok      filled   flag
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if not has_ticket(poll_ticket_key, token, inc) or redis.call('EXISTS', poll_key) == 1 then return ok(0) end
-- Starts a new generation of votes. All older generations are already in Postgres.
redis.call('HSET', poll_key, 'g', next_version(meta_key), unpack(fields))
redis.call('PEXPIRE', poll_key, ttl_ms)
redis.call('DEL', poll_ticket_key)
local _, ms = now()
if tonumber(closes_ms) > ms then redis.call('ZADD', due_key, 'NX', closes_ms, poll) end
return ok(1)

--[[
@summary Stores a message that was loaded from Postgres because Redis lacked it.
@why     A fill needs its ticket and an absent key, so it never restores an old state (architecture, Journal).
@repeatable A ticket can be used only once.
@flag    allow-oom
@key     message  {NN}:msg:<chat>:<message_id>           STRING
@key     ticket   {NN}:msg:<chat>:<message_id>:ticket    STRING
@arg     token    text
@arg     record   bytes
@arg     ttl_ms   int
@ok      filled   flag
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if not has_ticket(ticket_key, token, inc) or redis.call('EXISTS', message_key) == 1 then return ok(0) end
redis.call('SET', message_key, record, 'PX', ttl_ms)
redis.call('DEL', ticket_key)
return ok(1)

--[[
@summary Returns the copy of a control record. If Redis has no copy, creates a ticket to load it from Postgres.
@repeatable A second read finds the same record or ticket.
@flag    allow-oom
@key     record  {NN}:<subject>:<id>    STRING
@key     ticket  {NN}:<subject>:<id>:ticket STRING
@arg     ttl_ms  int
@ok      bytes   bytes
@err     missing ticket text
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local bytes, version = read_control(record_key, inc)
if not bytes then return refuse('missing', leave_ticket(ticket_key, token, inc)) end
redis.call('PEXPIRE', record_key, copy_ttl(version, ttl_ms), 'XX')
return ok(bytes)

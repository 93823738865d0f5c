--[[
@summary Deletes a poll whose message could not be sent.
@repeatable A second run deletes nothing.
@flag    allow-oom
@key     poll     {NN}:poll:<poll>  HASH
@key     poll_ticket  {NN}:poll:<poll>:ticket  STRING
@key     due      {NN}:polls_due  ZSET     poll -> ms
@arg     poll     text
@arg     place    text    partition and number of the poll, separated by a colon
]]
local why = closed(meta_key, journal_key, run, LIMITS.journal_reserve)
if why then return refuse(why) end
redis.call('ZREM', due_key, poll)
local p = read_post(poll_key)
if not p or p.deleted then return ok() end
local version = next_version(meta_key)
redis.call('DEL', poll_key, poll_ticket_key)
redis.call('HSET', poll_key, 'c', p.chat, 'x', 1, 'u', 0, 'v', version)
journal_image({meta = meta_key, journal = journal_key}, version, 'poll:' .. place, '', poll_key)
return ok()

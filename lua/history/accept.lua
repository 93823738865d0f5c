--[[
@summary Makes a replaced Postgres server the current server again, on an operator's request.
@repeatable Accepting the same server twice changes nothing.
@flag    allow-oom
@key     history  {NN}:postgres  HASH
@arg     server   text   system identifier and timeline
@arg     running  text   database, timeline and start time of the server
]]
local known = redis.call('HMGET', history_key, 'server', 'running')
local _, ms = now()
for i, name in ipairs({ server, running }) do
  if known[i] and known[i] ~= name then redis.call('HSET', history_key, 'gone:' .. known[i], ms) end
end
redis.call('HDEL', history_key, 'gone:' .. server, 'gone:' .. running)
redis.call('HSET', history_key, 'server', server, 'running', running)
return ok()

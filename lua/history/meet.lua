--[[
@summary Records the current Postgres server and its incarnation, and returns the previous server.
@why     From then on, Petrel rejects a replaced server, even if that server still accepts writes.
@repeatable Recording the same server twice changes nothing.
@flag    allow-oom
@key     history      {NN}:postgres  HASH
@arg     server       text   system identifier and timeline
@arg     running      text   database, timeline and start time of the server
@arg     incarnation  int    how often Postgres was found to have lost commits
@ok      before       text?
@err     replaced
]]
local known = redis.call('HMGET', history_key, 'server', 'running', 'incarnation')
if redis.call('HEXISTS', history_key, 'gone:' .. server) == 1 or redis.call('HEXISTS', history_key, 'gone:' .. running) == 1 then
  return refuse('replaced')
end
local _, ms = now()
for i, name in ipairs({ server, running }) do
  if known[i] and known[i] ~= name then redis.call('HSET', history_key, 'gone:' .. known[i], ms) end
end
redis.call('HSET', history_key, 'server', server, 'running', running,
  'incarnation', math.max(tonumber(known[3] or 0), tonumber(incarnation)))

local gone = {}
local fields = redis.call('HGETALL', history_key)
for i = 1, #fields, 2 do
  if fields[i]:sub(1, 5) == 'gone:' then gone[#gone + 1] = { fields[i], tonumber(fields[i + 1]) } end
end
table.sort(gone, function(a, b) return a[2] > b[2] end)
for i = LIMITS.replaced_servers_kept_max + 1, #gone do redis.call('HDEL', history_key, gone[i][1]) end
return ok(known[1])

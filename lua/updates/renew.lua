--[[
@summary Renews the leases of the waiting consumers of a partition that have no work.
         Returns the waiting consumers that have work.
@why     A consumer may be taken over, or get an update, at the same time.
@repeatable A renewed lease is renewed again.
@flag    allow-oom
@key     meta         {NN}:meta               HASH
@derived state        {NN}:queue_state:<bot>  HASH
@derived consumers    {NN}:consumers:<bot>    ZSET
@derived consumption  {NN}:consumption:<bot>  HASH
@derived assigned     {NN}:assigned:<bot>     ZSET
@arg     run          text
@args    waiting      text    bot, consumer, name of its poll and length of its lease in ms, alternating
@ok      waits        raw     for each consumer: ms until the lease of another consumer ends, -1 for none, or -2 if its
                              poll must make a step
@err     stale_run
]]
if redis.call('HGET', meta_key, 'run') ~= run then return refuse('stale_run') end
local _, ms = now()
local waits = {}
for i = 1, #waiting, 4 do
  local bot, name, poll = waiting[i], waiting[i + 1], waiting[i + 2]
  local s = redis.call('HMGET', state_key(bot), 'seq', 'poll', 'hook')
  local at = {state = state_key(bot), consumers = consumers_key(bot), consumption = consumption_key(bot),
    assigned = assigned_key(bot)}
  local shared = shared_until(s[2])
  local c = shared > 0 and not s[3] and redis.call('HMGET', at.consumption, 'cur', 'p:' .. name)
  local is_current = c and c[1] and c[2] == poll and tonumber(c[1]) >= tonumber(s[1])
  local wait = is_current and idle_wait(at, name, ms)
  if wait then renew_lease(at, name, shared, ms + tonumber(waiting[i + 3])) end
  waits[#waits + 1] = wait or -2
end
return ok(waits)

--[[
@summary Empties a bot's queue, as its owner asked.
@flag    allow-oom
@key     state  {NN}:queue_state:<bot>  HASH
@key     queue  {NN}:queue:<bot>        STREAM
@ok      dropped  int
]]
local n = redis.call('XLEN', queue_key)
if n > 0 then
  redis.call('DEL', queue_key)
  redis.call('HSET', state_key, 'bytes', 0)
end
return ok(n)

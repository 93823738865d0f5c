--[[
@summary Returns which waiting polls of a partition must be woken to check their queue.
@flag    no-writes
@derived state  {NN}:queue_state:<bot>  HASH
@derived queue  {NN}:queue:<bot>        STREAM
@args    polls  text    bot and poll name alternating
@ok      wake   texts   names of the polls to wake
]]
local wake = {}
for i = 1, #polls, 2 do
  local s = redis.call('HMGET', state_key(polls[i]), 'poll', 'hook')
  if s[1] ~= polls[i + 1] or s[2] or redis.call('XLEN', queue_key(polls[i])) > 0 then wake[#wake + 1] = polls[i + 1] end
end
return ok(wake)

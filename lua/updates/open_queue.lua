--[[
@summary Opens a bot's queue if it has none.
@repeatable An open queue is not opened again.
@flag    allow-oom
@key     state   {NN}:queue_state:<bot>  HASH
@arg     start   int   random number, the id before the first update
@arg     mask    int   kinds of updates to queue
@arg     hook    text  version of the bot's webhook, or empty
@arg     set     text  version at which the webhook was last set
@ok      opened  flag
]]
if redis.call('HEXISTS', state_key, 'seq') == 1 then return ok(0) end
local inc = incarnation_of(redis.call('HGET', meta_key, 'ver') or 0)
redis.call('HSET', state_key, 'seq', start, 'inc', inc, 'bytes', 0, 'mask', mask)
-- If Redis lost its data, it has no delivery position, so the worker starts at the first update.
if hook ~= '' then
  redis.call('HSET', state_key, 'hook', hook, 'hook_version', hook, 'hook_set', set, 'since', hook, 'cur', 0)
end
return ok(1)

--[[
@summary Opens the queue of a bot that has no queue.
@repeatable An open queue is not opened again.
@flag    allow-oom
@key     state   {NN}:queue_state:<bot>  HASH
@arg     known   int   the incarnation before Postgres was read
@arg     start   int   random number, the id before the first update
@arg     mask    int   kinds of updates to queue
@arg     hook    text  version of the bot's webhook, or empty
@arg     set     text  version at which the webhook was last set
@arg     routes  bytes see `install_routes`; empty for a bot that never had routes
@ok      opened  flag
@err     moved   incarnation int
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if redis.call('HEXISTS', state_key, 'seq') == 1 then return ok(0) end
-- If Redis lost writes after the caller read the settings, refuses the settings. The lost writes may have opened this
-- queue with later settings.
if inc ~= tonumber(known) then return refuse('moved', inc) end
redis.call('HSET', state_key, 'seq', start, 'inc', inc, 'bytes', 0, 'mask', mask)
-- A new queue has no delivery position. The worker starts at the first update.
if hook ~= '' then
  redis.call('HSET', state_key, 'hook', hook, 'hook_version', hook, 'hook_set', set, 'since', hook, 'cur', 0)
end
if routes ~= '' then
  install_routes({state = state_key, routes = routes_key, bot = state_key:match('%d+$')}, cmsgpack.unpack(routes))
end
return ok(1)

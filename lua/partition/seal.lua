--[[
@summary Closes a partition before its Redis is stopped in order: changes are refused until it is opened again.
@why     All changes stand before the seal in the append-only file: a Redis that still has the seal has lost none of them.
@repeatable A partition that is sealed already refuses.
@include partition
@key     meta   {NN}:meta   HASH
@arg     run    text
@arg     seal   text        random, kept in Postgres too
@err     stale_run
@flag    allow-oom
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
redis.call('HSET', meta_key, 'run', 'sealed', 'seal', seal)
return ok()

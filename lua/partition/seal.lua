--[[
@summary Closes a partition before its Redis is shut down: changes are refused until it is opened again.
@why     In the append-only file all changes precede the seal, so a Redis that still has the seal has lost none of them.
@repeatable A sealed partition is already closed.
@arg     seal   text        random text that is also stored in Postgres
@flag    allow-oom
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
redis.call('HSET', meta_key, 'run', 'sealed', 'seal', seal)
return ok()

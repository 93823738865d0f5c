--[[
@summary Closes a partition before its Redis shuts down. Scripts refuse changes until the partition is opened again.
@why     In the append-only file, all changes precede the seal. A Redis that still has the seal has therefore lost no
         change.
@repeatable A sealed partition is already closed.
@arg     seal   text        random text that is also stored in Postgres
@flag    allow-oom
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
redis.call('HSET', meta_key, 'run', 'sealed', 'seal', seal)
return ok()

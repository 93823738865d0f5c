--[[
@summary Returns the oldest and the newest entry of a partition's journal.
         Also returns the run id under which these entries were written.
@why     A caller compares the entries with its own change. The run id and the entries must be read at the same instant.
@ok      under    text
@ok      first    int?          version of the oldest entry, which may not be in Postgres yet
@ok      last     int?          version of the newest entry
@flag    no-writes
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local oldest = redis.call('XRANGE', journal_key, '-', '+', 'COUNT', 1)[1]
local newest = redis.call('XREVRANGE', journal_key, '+', '-', 'COUNT', 1)[1]
return ok(run, oldest and oldest[1]:match('^%d+') or false, newest and newest[1]:match('^%d+') or false)

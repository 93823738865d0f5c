--[[
@summary Removes copies of control records that a committed change has made stale.
@why     A fill that read Postgres before the change must not bring the past back: its ticket goes with the copy.
@repeatable What is gone stays gone, or was read back since.
@flag    allow-oom
@keys    entries  {NN}:<subject>:<id>  STRING  copies and the tickets of their fills
@ok      removed  int
]]
local removed = 0
for _, entry in ipairs(entries_keys) do removed = removed + redis.call('DEL', entry) end
return ok(removed)

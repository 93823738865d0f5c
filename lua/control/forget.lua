--[[
@summary Removes copies of control records that a committed change has made stale.
@why     A fill that read Postgres before the change must not restore the old value, so its ticket is removed too.
@repeatable A second run can only remove copies that were read again since.
@flag    allow-oom
@keys    entries  {NN}:<subject>:<id>  STRING  copies, and their fill tickets
@ok      removed  int
]]
local removed = 0
for _, entry in ipairs(entries_keys) do removed = removed + redis.call('DEL', entry) end
return ok(removed)

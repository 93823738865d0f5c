--[[
@summary Removes the copies of control records that a Postgres commit has changed.
@why     A fill that read Postgres before the change must not store the old value, so the script also removes the fill's
         ticket.
@repeatable A second run only removes copies that nodes can read from Postgres again.
@flag    allow-oom
@keys    entries  {NN}:<subject>:<id>  STRING  copies, and their fill tickets
@ok      removed  int
]]
local removed = 0
for _, entry in ipairs(entries_keys) do removed = removed + redis.call('DEL', entry) end
return ok(removed)

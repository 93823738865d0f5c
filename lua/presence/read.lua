--[[
@summary Returns which users have a browser window open on any node.
@why     The clock of Redis decides when the record of a dead node expires.
@flag    no-writes
@derived windows {NN}:windows:<user>  ZSET  node -> until (ms)
@args    users   text
@ok      present raw   users with an open window
]]
local _, ms = now()
local present = {}
for _, user in ipairs(users) do
  if redis.call('ZCOUNT', windows_key(user), ('(%.0f'):format(ms), '+inf') > 0 then present[#present + 1] = user end
end
return ok(present)

--[[
@summary Announces this process and its report to the others.
@why     Ages are counted by Redis' clock, since those of nodes may differ.
@repeatable What is told twice is told anew.
@include clock
@flag    allow-oom
@key     processes  {NN}:<what>  HASH   process -> when it told (ms), a space, and what
@arg     id         text
@arg     told       text
]]
local _, ms = now()
redis.call('HSET', processes_key, id, ('%.0f '):format(ms) .. told)
return ok()

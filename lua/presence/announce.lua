--[[
@summary Stores a process's report about itself, for the other processes.
@why     Ages are measured by Redis' clock, because the nodes' clocks may differ.
@repeatable A repeated report replaces the first.
@flag    allow-oom
@key     processes  {NN}:<what>  HASH   process -> time of its report (ms), a space, and the report
@arg     id         text
@arg     report       text
]]
local _, ms = now()
redis.call('HSET', processes_key, id, ('%.0f '):format(ms) .. report)
return ok()

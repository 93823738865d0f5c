--[[
@summary Counts a token that never existed against the client address that tried it, or tells how long the address is to wait.
@why     One address may try on every node at the same instant.
@repeatable A guess that was sent again counts twice, which nobody notices.
@include clock
@flag    allow-oom
@key     guesses  {NN}:guesses:<address>  STRING  when (ms) all that was taken is made good
@arg     burst        int   guesses that are taken at once
@arg     interval_ms  int   in which one is made good
@ok      wait         int   ms until the next is taken; 0 when this one was
]]
local _, ms = now()
local interval = tonumber(interval_ms)
local good = math.max(tonumber(redis.call('GET', guesses_key) or 0), ms)
local wait = good + interval - tonumber(burst) * interval - ms
if wait > 0 then return ok(wait) end

local ends = good + interval
redis.call('SET', guesses_key, ('%.0f'):format(ends), 'PX', math.ceil(ends - ms))
return ok(0)

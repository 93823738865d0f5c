--[[
@summary Counts a client address's guess at a token, or returns how long the address must wait before its next guess.
@why     Several nodes may receive guesses from one address at the same time, and each guess must count.
@repeatable A retried call counts twice, which does no harm.
@flag    allow-oom
@key     guesses  {NN}:guesses:<address>  STRING  time (ms) at which all guesses are forgiven
@arg     burst        int   guesses allowed at once
@arg     interval_ms  int   time after which one guess is forgiven
@ok      wait         int   ms until the next guess is allowed; 0 when this one was counted
]]
local _, ms = now()
local interval = tonumber(interval_ms)
local good = math.max(tonumber(redis.call('GET', guesses_key) or 0), ms)
local wait = good + interval - tonumber(burst) * interval - ms
if wait > 0 then return ok(wait) end

local ends = good + interval
redis.call('SET', guesses_key, ('%.0f'):format(ends), 'PX', math.ceil(ends - ms))
return ok(0)

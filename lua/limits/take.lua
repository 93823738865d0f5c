--[[
@summary Takes calls out of a token bucket that holds at least one, or tells how long it is until there is one in it.
@why     Calls of one caller come on every node at the same instant, and all of them count.
@repeatable A take that was sent again counts twice: the caller waits a little longer.
@flag    allow-oom
@key     bucket       {NN}:rate:<kind>:<id>  STRING  when (µs) the bucket is full again
@arg     calls        int   that a full bucket holds
@arg     interval_us  int   in which one comes back
@arg     count        int   to take; what the bucket lacks is owed
@ok      wait         int   ms until there is one; 0 when they were taken
]]
local time = redis.call('TIME')
local us = tonumber(time[1]) * 1000 * 1000 + tonumber(time[2])
local interval = tonumber(interval_us)
local full = math.max(tonumber(redis.call('GET', bucket_key) or 0), us)
local wait = full + interval - tonumber(calls) * interval - us
if wait > 0 then return ok(math.ceil(wait / 1000)) end

local ends = full + interval * tonumber(count)
redis.call('SET', bucket_key, ('%.0f'):format(ends), 'PX', math.ceil((ends - us) / 1000))
return ok(0)

--[[
@summary Takes tokens from a token bucket, one for each call, or puts tokens back.
         If the bucket is empty, returns how long the caller must wait.
@why     Several nodes may receive calls of one caller at the same time, and each call must count.
@repeatable A retried call counts twice, so the caller waits slightly longer, or gets one more call.
@flag    allow-oom
@key     bucket       {NN}:rate:<kind>:<id>  STRING  time (µs) at which the bucket is full again
@arg     calls        int   capacity of the bucket
@arg     interval_us  int   time in which one call is refilled
@arg     count        int   calls to take; the bucket may go negative. Below 0: calls to give back
@ok      wait         int   ms until a call is available; 0 when they were taken
]]
local time = redis.call('TIME')
local us = tonumber(time[1]) * 1000 * 1000 + tonumber(time[2])
local interval = tonumber(interval_us)
local full = math.max(tonumber(redis.call('GET', bucket_key) or 0), us)
local wait = full + interval - tonumber(calls) * interval - us
local taken = tonumber(count)
if taken > 0 and wait > 0 then return ok(math.ceil(wait / 1000)) end

local ends = full + interval * taken
if ends <= us then
  redis.call('DEL', bucket_key)
  return ok(0)
end
redis.call('SET', bucket_key, ('%.0f'):format(ends), 'PX', math.ceil((ends - us) / 1000))
return ok(0)

--[[
@summary Opens a sealed partition under the incarnation that it had.
@why     The seal proves that nothing was lost; Postgres gave this run id the right to use it.
@include partition
@key     meta         {NN}:meta   HASH
@arg     run          text        the run id of the Redis the caller speaks to; the runner adds it
@arg     expected     text        the run id to which Postgres gave the seal
@arg     seal         text
@arg     high_water   int         entries of the journal above which changes are refused
@arg     bytes_max    int         the same in bytes
@err     moved
@err     unsealed
@flag    allow-oom
]]
if run ~= expected then return refuse('moved') end
local known = redis.call('HMGET', meta_key, 'run', 'seal')
if known[1] == run then return ok() end
if known[1] ~= 'sealed' or known[2] ~= seal then return refuse('unsealed') end
redis.call('HSET', meta_key, 'run', run, 'hw', high_water, 'hwb', bytes_max)
redis.call('HDEL', meta_key, 'seal')
return ok()

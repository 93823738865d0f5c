--[[
@summary Opens a sealed partition without raising its incarnation.
@why     The seal proves that nothing was lost, and Postgres allowed this run id to use it.
@key     meta         {NN}:meta   HASH
@arg     run          text        run id of the connected Redis; added by the runner
@arg     expected     text        run id that Postgres allowed to use the seal
@arg     seal         text
@arg     high_water   int         journal entries at which changes are refused
@arg     bytes_max    int         journal bytes at which changes are refused
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

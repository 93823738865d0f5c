--[[
@summary Lets go of entities of a partition that is closed: Postgres has all of them, some in a later version.
@why     Once the partition is open, what is here may be what Postgres does not have yet.
@repeatable What is gone is gone.
@key     meta      {NN}:meta         HASH     run, ver, hw
@key     lease     {NN}:forgetting   STRING   who does it: a hundred nodes meet one failover
@keys    entities  {NN}:…            STRING   of any type; none only takes or renews the lease
@arg     run       text              the run id of the Redis the caller speaks to; the runner adds it
@arg     expected  text              the run id under which the partition is to be opened
@arg     owner     text
@err     moved
@err     open
@err     taken
@flag    allow-oom
]]
if run ~= expected then return refuse('moved') end
if redis.call('HGET', meta_key, 'run') == run then return refuse('open') end
local holder = redis.call('GET', lease_key)
if holder and holder ~= owner then return refuse('taken') end
redis.call('SET', lease_key, owner, 'PX', LIMITS.forget_lease_ms)
if #entities_keys > 0 then redis.call('UNLINK', unpack(entities_keys)) end
return ok()

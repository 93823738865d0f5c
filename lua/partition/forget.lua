--[[
@summary Removes entities of a closed partition from Redis.
         Postgres has all of these entities, and some of them in a later version.
@why     Only entities of a closed partition may be removed. In an open partition, an entity may be newer than
         in Postgres.
@repeatable Removing an entity twice changes nothing.
@key     meta      {NN}:meta         HASH     run, ver, hw
@key     lease     {NN}:forgetting   STRING   the node that removes entities, since a hundred nodes may notice one failover
@keys    entities  {NN}:…            STRING   of any type; an empty list only takes or renews the lease
@arg     run       text              run id of the connected Redis; added by the runner
@arg     expected  text              run id under which the partition will be opened
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

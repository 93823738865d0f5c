--[[
@summary Opens a partition for the connected Redis under a raised incarnation.
         If the incarnation is too low, returns the highest version instead.
@why     The new incarnation must exceed the last version issued here. Run id and version must change together, because
         a script that finds its own run id may issue versions at once.
@arg     expected     text          run id for which the incarnation was registered
@arg     incarnation  int           incarnation registered in Postgres; 0 only queries the partition
@arg     post         int           number of the last post in Postgres
@arg     high_water   int           journal entries at which changes are refused
@arg     bytes_max    int           journal bytes at which changes are refused
@arg     installation text          id of the installation, which masters of other clusters lack; empty stores none
@ok      opened       flag          0 if the partition was already open
@err     behind       highest int
@err     moved
@flag    allow-oom
]]
if run ~= expected then return refuse('moved') end

local known = redis.call('HMGET', meta_key, 'run', 'ver', 'hw', 'post', 'hwb', 'of')
local function note_installation()
  if installation ~= '' and known[6] ~= installation then redis.call('HSET', meta_key, 'of', installation) end
end
if known[1] == run then
  note_installation()
  if known[3] ~= high_water or known[5] ~= bytes_max then
    redis.call('HSET', meta_key, 'hw', high_water, 'hwb', bytes_max)
  end
  return ok(0)
end

-- Even an empty journal keeps the id of its last entry. If the version counter was lost, this id shows the highest
-- version.
local highest = tonumber(known[2] or '0')
if redis.call('EXISTS', journal_key) == 1 then
  local info = redis.call('XINFO', 'STREAM', journal_key)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      highest = math.max(highest, tonumber(info[i + 1]:match('^%d+')))
    end
  end
end

local raised = tonumber(incarnation)
if incarnation_of(highest) >= raised then return refuse('behind', ('%.0f'):format(highest)) end
redis.call('HSET', meta_key, 'run', run, 'ver', ('%.0f'):format(raised * LIMITS.versions_per_incarnation), 'hw', high_water,
  'hwb', bytes_max, 'post', ('%.0f'):format(math.max(tonumber(post), tonumber(known[4] or 0))))
note_installation()
return ok(1)

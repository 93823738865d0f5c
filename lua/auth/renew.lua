--[[
@summary Renews a node's lease on what it remembers of tokens, acknowledges an epoch, and tells what was revoked since.
@why     A revoker that reads the leases must see either the acknowledgement or a lease that it has to wait for.
@include clock
@include epochs
@flag    allow-oom
@key     nodes    {NN}:auth_nodes    HASH    run, generation, epoch; node -> acknowledged epoch and lease end (ms)
@key     revoked  {NN}:auth_revoked  STREAM
@arg     run        text
@arg     node       text
@arg     known      text   generation of the epoch that is acknowledged; nothing at first
@arg     acked      int    epoch up to which this node has forgotten; 0 at first
@arg     candidate  text   unique name of a generation, should a new one begin
@arg     lease_ms   int
@ok      generation text
@ok      epoch      int
@ok      subjects   texts  revoked above acked; '*' where that cannot be said
]]
local generation = generation_of(nodes_key, revoked_key, run, candidate)
local epoch = tonumber(redis.call('HGET', nodes_key, 'epoch') or 0)
local subjects = {}
local from = tonumber(acked)
if known ~= generation or from > epoch then
  from = 0
  subjects[1] = '*'
elseif from < epoch then
  local log = redis.call('XRANGE', revoked_key, (from + 1) .. '-0', '+')
  if #log < epoch - from then
    subjects[1] = '*'
  else
    for i, entry in ipairs(log) do subjects[i] = entry[2][2] end
  end
end
local _, ms = now()
redis.call('HSET', nodes_key, node, from .. ' ' .. ('%.0f'):format(ms + tonumber(lease_ms)))
return ok(generation, epoch, subjects)

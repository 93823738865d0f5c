--[[
@summary Renews a node's lease on what it remembers of tokens, acknowledges an epoch, and tells what was revoked since.
@why     A revoker that reads the leases must see either the acknowledgement or a lease that it has to wait for.
@include clock
@flag    allow-oom
@key     nodes    {NN}:auth_nodes    HASH
@key     revoked  {NN}:auth_revoked  STREAM
@arg     node      text
@arg     acked     int    epoch up to which this node has forgotten; 0 at first
@arg     lease_ms  int
@ok      epoch     int
@ok      subjects  texts  revoked above acked; '*' where the log does not reach back
]]
local epoch = tonumber(redis.call('HGET', nodes_key, 'epoch') or 0)
local subjects = {}
local from = tonumber(acked)
if from > epoch then
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
redis.call('HSET', nodes_key, node, math.min(from, epoch) .. ' ' .. ('%.0f'):format(ms + tonumber(lease_ms)))
return ok(epoch, subjects)

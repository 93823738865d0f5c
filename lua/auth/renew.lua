--[[
@summary Renews a node's lease on its cached tokens, and records which epoch the node has acknowledged.
         Returns the subjects that were revoked after that epoch.
@why     A node that revokes a token reads the leases. For each node, it must find either the acknowledgement or a lease
         to wait for.
@repeatable The node counts its lease from the first attempt.
@flag    allow-oom
@key     nodes    {NN}:auth_nodes    HASH    incarnation, epoch; node -> acknowledged epoch and lease end (ms)
@key     revoked  {NN}:auth_revoked  STREAM
@arg     node       text
@arg     known      int    incarnation of the acknowledged epoch; 0 at first
@arg     acked      int    epoch up to which this node has discarded revoked tokens; 0 at first
@arg     lease_ms   int
@ok      incarnation int
@ok      epoch      int
@ok      subjects   texts  subjects revoked after `acked`; '*' means all, because they are unknown
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
begin_epochs(nodes_key, revoked_key, inc)
local epoch = tonumber(redis.call('HGET', nodes_key, 'epoch') or 0)
local subjects = {}
local from = tonumber(acked)
-- If the log is long, the node discards its whole cache, because reading the log would take longer.
if tonumber(known) ~= inc or from > epoch or epoch - from > LIMITS.script_entries_max then
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
return ok(inc, epoch, subjects)

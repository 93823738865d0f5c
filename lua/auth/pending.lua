--[[
@summary Returns how many nodes have not acknowledged an epoch. Removes nodes that disappeared long ago.
@why     The revoking node uses its own monotonic clock to decide whether a lease has expired, because the clock of
         Redis may be changed.
@repeatable The script only counts.
@flag    allow-oom
@key     nodes  {NN}:auth_nodes  HASH
@arg     epoch  int
@arg     incarnation int  the incarnation of the epoch
@ok      pending  int   at least 1 under another incarnation, because Redis may have lost nodes
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local _, ms = now()
local pending = tonumber(incarnation) == inc and 0 or 1
local fields = redis.call('HGETALL', nodes_key)
for i = 1, #fields, 2 do
  local acked, ends = fields[i + 1]:match('^(%d+) (%d+)$')
  if acked then
    if tonumber(ends) < ms - LIMITS.auth_node_age_ms_max then
      redis.call('HDEL', nodes_key, fields[i])
    elseif tonumber(acked) < tonumber(epoch) then
      pending = pending + 1
    end
  end
end
return ok(pending)

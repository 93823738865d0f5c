--[[
@summary Returns the nodes that have not acknowledged an epoch. Also removes the nodes that the caller found dead.
@why     The revoking node uses its own monotonic clock to decide whether a lease has expired, because the clock of
         Redis may be changed.
@repeatable An entry that has changed is not removed.
@flag    allow-oom
@key     nodes  {NN}:auth_nodes  HASH
@arg     epoch  int
@arg     incarnation int  the incarnation of the epoch
@args    gone     text   nodes to remove, each followed by its entry
@ok      pending  int   at least 1 under another incarnation, because Redis may have lost nodes
@ok      late     texts  nodes that have not acknowledged the epoch, each followed by its entry
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
for i = 1, #gone, 2 do
  if redis.call('HGET', nodes_key, gone[i]) == gone[i + 1] then redis.call('HDEL', nodes_key, gone[i]) end
end
local pending, late = tonumber(incarnation) == inc and 0 or 1, {}
local fields = redis.call('HGETALL', nodes_key)
for i = 1, #fields, 2 do
  local acked = fields[i + 1]:match('^(%d+) %d+$')
  if acked and tonumber(acked) < tonumber(epoch) then
    pending = pending + 1
    if #late < LIMITS.script_entries_max then late[#late + 1], late[#late + 2] = fields[i], fields[i + 1] end
  end
end
return ok(pending, late)

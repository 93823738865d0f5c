--[[
@summary Counts the nodes that may still remember what an epoch revoked; forgets nodes that are long gone.
@include clock
@flag    allow-oom
@key     nodes  {NN}:auth_nodes  HASH
@arg     epoch  int
@ok      pending  int
]]
local _, ms = now()
local pending = 0
local fields = redis.call('HGETALL', nodes_key)
for i = 1, #fields, 2 do
  if fields[i] ~= 'epoch' then
    local acked, ends = fields[i + 1]:match('^(%d+) (%d+)$')
    if tonumber(ends) < ms - 60000 then
      redis.call('HDEL', nodes_key, fields[i])
    elseif tonumber(acked) < tonumber(epoch) and tonumber(ends) >= ms then
      pending = pending + 1
    end
  end
end
return ok(pending)

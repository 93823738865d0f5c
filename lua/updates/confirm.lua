--[[
@summary Confirms the updates below an offset, outside a poll.
         With a consumer, confirms only updates that the consumer has seen.
@why     A poll may assign updates to consumers at the same time.
@repeatable Confirmed updates stay confirmed.
@flag    allow-oom
@key     channel  {NN}:on_bot:<bot>       CHANNEL
@arg     name     text    the consumer, or empty
@arg     offset   int
@ok      more     flag    more updates must be confirmed: call again
@err     webhook_active
@err     shared
]]
local s = redis.call('HMGET', state_key, 'seq', 'poll', 'hook')
if not s[1] then return refuse('queue_missing') end
if s[3] then return refuse('webhook_active') end
local shared = shared_until(s[2])
local below = tonumber(offset)
if below < 1 or below > tonumber(s[1]) + 1 then return ok(0) end
if name == '' then
  if shared > 0 and shared > select(2, now()) then return refuse('shared') end
  local more = confirm_oldest(state_key, queue_key, ('(%.0f-0'):format(below), math.huge)
  if not more then redis.call('SPUBLISH', channel_key, 'c') end
  return ok(more and 1 or 0)
end
-- If no consumer polls, the lists of sent updates are outdated, because polls without a consumer do not update these
-- lists.
if shared == 0 then return ok(0) end
local at = {queue = queue_key, consumption = consumption_key, holders = holders_key}
local sent = read_sent(at, name)
-- The consumer may have missed the last answer of its poll. Passing `below` also as the previous offset confirms only
-- the update with the id `below` - 1.
local former = redis.call('HGET', consumption_key, 'o:' .. name)
local rest, freed = confirm_sent(at, sent, below, below, stream_floor(former))
if #rest == #sent then return ok(0) end
if #rest == 0 then
  redis.call('HDEL', consumption_key, 's:' .. name)
else
  redis.call('HSET', consumption_key, 's:' .. name, cmsgpack.pack(rest))
end
if freed > 0 then redis.call('HINCRBY', state_key, 'bytes', ('%d'):format(-freed)) end
redis.call('SPUBLISH', channel_key, 'c ' .. name)
return ok(0)

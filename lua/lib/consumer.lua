--[[
@summary Divides a bot's queue among consumers. Records the holder of each chat, and the updates sent to each consumer.
@key     state        {NN}:queue_state:<bot>  HASH
@key     queue        {NN}:queue:<bot>        STREAM
@key     consumers    {NN}:consumers:<bot>    ZSET
@key     consumption  {NN}:consumption:<bot>  HASH
@key     assigned     {NN}:assigned:<bot>     ZSET
@key     unsent       {NN}:unsent:<bot>       ZSET
@key     holders      {NN}:holders:<bot>      HASH
]]
-- Each update up to the cursor (`cur`) is confirmed, sent to a consumer, or in `unsent`. A chat with sent or unsent
-- updates has a holder, which is the only consumer that gets the chat's updates. `unsent` is sorted by chat. `assigned`
-- contains only the first unsent update of each chat (the head), sorted by holder. If a chat gets another holder, only
-- its head moves.

-- The modulus for weights of consumers. It is a prime, and the product of two weights is exact in a double.
local CONSUMER_PRIME = 16777213

-- Returns when the latest lease of the bot's consumers ends, in ms. Returns 0 if the bot's last poll had no consumer.
-- `poll` is a field of the queue's state. It contains an asterisk and the end of the latest lease while consumers poll,
-- and otherwise the name of the last poll.
local function shared_until(poll)
  return tonumber((poll or ''):match('^%*(%d+)$') or 0)
end

local function consumer_digest(text)
  return tonumber(redis.sha1hex(text):sub(1, 6), 16)
end

-- Returns four values: the other consumers with a lease, the other consumers whose lease has ended, the ms until the
-- first lease of another consumer ends (-1 for none), and the time at which this consumer's own lease ends.
local function read_consumers(at, name, ms)
  local live, dead, wait, own = {}, {}, -1, nil
  local found = redis.call('ZRANGE', at.consumers, 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local left = tonumber(found[i + 1]) - ms
    if found[i] == name then
      own = tonumber(found[i + 1])
    elseif left > 0 then
      live[#live + 1] = found[i]
      wait = wait < 0 and left or math.min(wait, left)
    else
      dead[#dead + 1] = found[i]
    end
  end
  return live, dead, wait, own
end

-- Returns nil if this consumer's step has work to do: the consumer has sent or assigned updates, or a lease has ended.
-- Otherwise returns the ms until another consumer's lease ends, or -1 if no other consumer has a lease.
local function idle_wait(at, name, ms)
  if redis.call('HEXISTS', at.consumption, 's:' .. name) == 1 then return nil end
  if #redis.call('ZRANGE', at.assigned, '[' .. name .. ':', '(' .. name .. ';', 'BYLEX', 'LIMIT', 0, 1) > 0 then return nil end
  local first = redis.call('ZRANGE', at.consumers, 0, 1, 'WITHSCORES')
  if not first[2] or tonumber(first[2]) <= ms then return nil end
  local other = first[first[1] == name and 4 or 2]
  return other and tonumber(other) - ms or -1
end

-- Renews a consumer's lease. If `name` is false, extends only `shared`, the end of the latest lease of all consumers.
local function renew_lease(at, name, shared, lease_end)
  redis.call('HSET', at.state, 'poll', ('*%.0f'):format(math.max(shared, lease_end)))
  if name then redis.call('ZADD', at.consumers, lease_end, name) end
end

-- Chooses the consumer for a chat without a holder. Each consumer has a weight for each chat, and the highest weight
-- wins (rendezvous hashing). When a consumer joins, it gets its share of the chats, and no other chat moves. `seeds`
-- caches the digests of names.
local function pick_consumer(names, seeds, chat)
  local digest, best, most = consumer_digest(chat), nil, -1
  for _, name in ipairs(names) do
    seeds[name] = seeds[name] or consumer_digest(name)
    local weight = (seeds[name] + digest) % CONSUMER_PRIME
    weight = (weight * weight + seeds[name]) % CONSUMER_PRIME
    weight = (weight * weight + digest) % CONSUMER_PRIME
    if weight > most or (weight == most and name < best) then best, most = name, weight end
  end
  return best
end

-- Pads ids to 16 digits, so that the text order of `assigned` and `unsent` is the numeric order.
local function padded(id)
  return ('%016.0f'):format(tonumber(id))
end

-- Returns the padded id of the first unsent update of a chat, or nil.
local function first_unsent(at, chat)
  local member = redis.call('ZRANGE', at.unsent, '[' .. chat .. ':', '(' .. chat .. ';', 'BYLEX', 'LIMIT', 0, 1)[1]
  return member and member:sub(#chat + 2)
end

-- Assigns a new update to the consumer that holds the update's chat. If no consumer in `names` holds the chat, picks a
-- consumer from `names`.
local function assign_update(at, names, seeds, id, chat)
  local holder, count = (redis.call('HGET', at.holders, chat) or ''):match('^(%S+) (%d+)$')
  local present = false
  for _, name in ipairs(names) do present = present or name == holder end
  if not present then holder = pick_consumer(names, seeds, chat) end
  redis.call('HSET', at.holders, chat, ('%s %d'):format(holder, (count or 0) + 1))
  local digits = padded(id)
  redis.call('ZADD', at.unsent, 0, chat .. ':' .. digits)
  if first_unsent(at, chat) == digits then redis.call('ZADD', at.assigned, 0, holder .. ':' .. digits .. ':' .. chat) end
end

-- Moves an update that was sent to a consumer back to `unsent`.
local function unsend_update(at, name, id, chat)
  local digits, head = padded(id), first_unsent(at, chat)
  redis.call('ZADD', at.unsent, 0, chat .. ':' .. digits)
  if head and head < digits then return end
  if head then redis.call('ZREM', at.assigned, name .. ':' .. head .. ':' .. chat) end
  redis.call('ZADD', at.assigned, 0, name .. ':' .. digits .. ':' .. chat)
end

-- Gives a chat and all its unsent updates to another consumer. `head` is the entry of the chat in `assigned`. The chat
-- must not have any sent updates.
local function give_chat(at, head, to)
  local digits, chat = head:match('^[^:]+:(%d+):(.+)$')
  local count = (redis.call('HGET', at.holders, chat) or ''):match(' (%d+)$')
  redis.call('HSET', at.holders, chat, to .. ' ' .. (count or 1))
  redis.call('ZREM', at.assigned, head)
  redis.call('ZADD', at.assigned, 0, to .. ':' .. digits .. ':' .. chat)
end

-- Call this when an update is confirmed or no longer exists. A chat without unconfirmed updates has no holder.
local function release_update(at, chat)
  local holder, count = (redis.call('HGET', at.holders, chat) or ''):match('^(%S+) (%d+)$')
  if count == '1' then
    redis.call('HDEL', at.holders, chat)
  elseif count then
    redis.call('HSET', at.holders, chat, ('%s %d'):format(holder, count - 1))
  end
end

local function assigned_to(at, name, limit)
  return redis.call('ZRANGE', at.assigned, '[' .. name .. ':', '(' .. name .. ';', 'BYLEX', 'LIMIT', 0, limit)
end

-- Removes a chat's head from `unsent` and `assigned`, and makes the chat's next unsent update the head. Returns the id
-- and the chat of the removed head.
local function take_head(at, name, head)
  local digits, chat = head:match('^[^:]+:(%d+):(.+)$')
  redis.call('ZREM', at.assigned, head)
  redis.call('ZREM', at.unsent, chat .. ':' .. digits)
  local following = first_unsent(at, chat)
  if following then redis.call('ZADD', at.assigned, 0, name .. ':' .. following .. ':' .. chat) end
  return ('%.0f'):format(tonumber(digits)), chat
end

-- Returns the unconfirmed updates that were sent to a consumer, as arrays of id, chat and bytes.
local function read_sent(at, name)
  local packed = redis.call('HGET', at.consumption, 's:' .. name)
  return packed and cmsgpack.unpack(packed) or {}
end

local function highest_id(sent)
  local highest = 0
  for _, each in ipairs(sent) do highest = math.max(highest, tonumber(each[1])) end
  return highest
end

-- Returns two values. The first lists the consumers whose updates were taken over, as arrays of the name and the
-- highest lost id. The latest takeover is last. The second, `moved`, is the highest id of all other updates that a
-- consumer may have seen and lost: to a takeover from a consumer that is no longer in the list, to a webhook, or to a
-- poll without a consumer.
local function read_taken(at)
  local c = redis.call('HMGET', at.consumption, 'taken', 'moved')
  return c[1] and cmsgpack.unpack(c[1]) or {}, tonumber(c[2] or 0)
end

-- Records that other consumers take over the updates in `sent`, which were sent to the consumer `name`. Keeps a limited
-- number of consumer names, because a bot can use any number of names.
local function remember_taken(at, name, sent)
  local taken, moved = read_taken(at)
  local highest = highest_id(sent)
  for i = #taken, 1, -1 do
    if taken[i][1] == name then highest = math.max(highest, table.remove(taken, i)[2]) end
  end
  taken[#taken + 1] = {name, highest}
  if #taken > LIMITS.consumers_max then
    moved = math.max(moved, table.remove(taken, 1)[2])
    redis.call('HSET', at.consumption, 'moved', ('%.0f'):format(moved))
  end
  redis.call('HSET', at.consumption, 'taken', cmsgpack.pack(taken))
end

-- Returns the highest id of an unconfirmed update that a consumer may have seen: an update in `sent`, or one that
-- another consumer took over.
local function highest_seen(at, name, sent)
  local taken, highest = read_taken(at)
  for _, each in ipairs(taken) do
    if each[1] == name then highest = math.max(highest, each[2]) end
  end
  return math.max(highest, highest_id(sent))
end

-- The consumer `name` has no lease. Gives its chats to other consumers, at most `budget` chats per call. Returns
-- whether the consumer has no chats left, and the remaining budget. The score 0 in `consumers` marks a consumer that
-- may have lost chats.
local function take_over(at, names, seeds, name, budget)
  redis.call('ZADD', at.consumers, 0, name)
  local sent = read_sent(at, name)
  if #sent > 0 then remember_taken(at, name, sent) end
  for _, each in ipairs(sent) do unsend_update(at, name, each[1], each[2]) end
  redis.call('HDEL', at.consumption, 's:' .. name, 'p:' .. name, 'o:' .. name)
  local heads = assigned_to(at, name, budget)
  for _, head in ipairs(heads) do give_chat(at, head, pick_consumer(names, seeds, head:match('[^:]+$'))) end
  local finished = #heads < budget
  if finished then redis.call('ZREM', at.consumers, name) end
  return finished, budget - #heads - #sent
end

-- Returns whether a consumer has more than `room` unsent updates in the chats of `heads`.
local function has_more_unsent(at, heads, room)
  local count = #heads
  for _, head in ipairs(heads) do
    if count > room then return true end
    local chat = head:match('[^:]+$')
    count = count - 1 + redis.call('ZLEXCOUNT', at.unsent, '[' .. chat .. ':', '(' .. chat .. ';')
  end
  return count > room
end

-- If a consumer has more than `room` unsent updates and other consumers have none, gives some of its chats to the other
-- consumers. Otherwise a consumer that polled before the others would keep all chats with pending updates. A chat with
-- sent updates stays with its consumer.
local function share_chats(at, names, name, sent, room)
  local heads = assigned_to(at, name, 2 * LIMITS.updates_batch_max)
  if #heads < 2 or not has_more_unsent(at, heads, room) then return end
  local among = {name}
  for _, other in ipairs(names) do
    local is_idle = other ~= name and redis.call('HEXISTS', at.consumption, 's:' .. other) == 0
    if is_idle and #assigned_to(at, other, 1) == 0 then among[#among + 1] = other end
  end
  if #among == 1 then return end
  local stays, moved = {}, false
  for _, each in ipairs(sent) do stays[each[2]] = true end
  -- Gives the chats to the consumers in turn, because `pick_consumer` would choose the same consumer again for most
  -- chats.
  for i, head in ipairs(heads) do
    local to = among[1 + i % #among]
    if to ~= name and not stays[head:match('[^:]+$')] then
      give_chat(at, head, to)
      moved = true
    end
  end
  if moved then redis.call('SPUBLISH', at.channel, 'u') end
end

-- Returns the index of an update in a list of updates, or 0.
local function position_of(sent, id)
  for i, each in ipairs(sent) do
    if tonumber(each[1]) == id then return i end
  end
  return 0
end

-- Returns the highest update id that the client may have seen before its stream began, or nil if the consumer's last
-- poll was not a stream. The stream sends updates with higher ids in a fixed order, so a client that has seen one of
-- them has seen all updates that the stream sent before it. The id is lost when another consumer takes over the
-- updates.
local function stream_floor(former)
  return tonumber((former or ''):match('^stream (%d+)$'))
end

-- Removes the updates below `offset` that were sent to a consumer. The offset must be just above one of them. Otherwise
-- the offset is not based on the last answer, and the consumer may not have seen the updates in that answer. `former`
-- is the last offset. A consumer that repeats its last offset may have missed the last answer. The offset then confirms
-- only the update just below it, because the consumer must have seen this update. After a stream, `floor` is set
-- (`stream_floor`), and the updates are in the order in which they were sent. An offset above the floor then confirms
-- the update just below it and those sent before this update. Any other offset confirms only the update just below it.
-- Returns the unconfirmed updates and the bytes of the removed ones.
local function confirm_sent(at, sent, offset, former, floor)
  local last = position_of(sent, offset - 1)
  if last == 0 then return sent, 0 end
  local repeated = offset == tonumber(former or -1)
  local rest, bytes = {}, 0
  for i, each in ipairs(sent) do
    local earlier
    if floor then earlier = i < last and offset - 1 > floor else earlier = tonumber(each[1]) < offset end
    if i == last or (earlier and (floor or not repeated)) then
      if redis.call('XDEL', at.queue, each[1] .. '-0') == 1 then bytes = bytes + each[3] end
      release_update(at, each[2])
    else
      rest[#rest + 1] = each
    end
  end
  return rest, bytes
end

-- Removes a limited number of unsent updates that are no longer in the queue. These updates have the lowest ids, so
-- their heads come first in each consumer's list.
local function drop_missing(at, names)
  if redis.call('ZCARD', at.unsent) <= redis.call('XLEN', at.queue) then return end
  local oldest = redis.call('XRANGE', at.queue, '-', '+', 'COUNT', 1)[1]
  local below = oldest and ':' .. padded(oldest[1]:match('^%d+')) or ';'
  local left = 2 * LIMITS.updates_batch_max
  for _, name in ipairs(names) do
    repeat
      local heads = redis.call('ZRANGE', at.assigned, '[' .. name .. ':', '(' .. name .. below, 'BYLEX', 'LIMIT', 0, left)
      for _, head in ipairs(heads) do release_update(at, select(2, take_head(at, name, head))) end
      left = left - #heads
    until #heads == 0 or left == 0
    if left == 0 then return end
  end
end

-- Assigns a limited number of updates after the cursor. `last` is the id of the queue's last update. Returns true if
-- there may be more updates to assign.
local function assign_new(at, names, seeds, last)
  local before = redis.call('HGET', at.consumption, 'cur')
  local cursor = before
  local entries, _, more = read_within(at.queue, '(' .. cursor .. '-0', '+', LIMITS.updates_batch_max)
  for _, entry in ipairs(entries) do
    cursor = entry[1]:match('^%d+')
    assign_update(at, names, seeds, cursor, entry[2][6])
  end
  if not more and tonumber(cursor) < tonumber(last) then cursor = last end
  if cursor ~= before then redis.call('HSET', at.consumption, 'cur', cursor) end
  if #entries > 0 then drop_missing(at, names) end
  return more
end

-- Moves a consumer's unsent updates to its sent updates, until `limit` or the size limit of a script is reached.
-- Returns the number of moved updates, and whether a limit is reached.
local function add_assigned(at, name, sent, limit)
  local bytes = 0
  for _, each in ipairs(sent) do bytes = bytes + each[3] end
  local taken = 0
  while #sent < limit and bytes < LIMITS.script_read_bytes_max and taken < 2 * LIMITS.updates_batch_max do
    local head = assigned_to(at, name, 1)[1]
    if not head then break end
    taken = taken + 1
    local id, chat = take_head(at, name, head)
    local entry = redis.call('XRANGE', at.queue, id .. '-0', id .. '-0')[1]
    if entry then
      sent[#sent + 1] = {id, chat, entry_bytes(entry[2])}
      bytes = bytes + sent[#sent][3]
    else
      release_update(at, chat)
    end
  end
  return taken, #sent >= limit or bytes >= LIMITS.script_read_bytes_max
end

-- Returns two lists: the queue entries of a consumer's sent updates from position `first` to `last`, and all its sent
-- updates. Both omit updates in this range that are no longer in the queue.
local function entries_of_sent(at, sent, first, last)
  local rows, rest = {}, {}
  for i, each in ipairs(sent) do
    local asked = i >= first and i <= last
    local entry = not asked or redis.call('XRANGE', at.queue, each[1] .. '-0', each[1] .. '-0')[1]
    if entry then
      rest[#rest + 1] = each
      if asked then rows[#rows + 1] = entry end
    else
      release_update(at, each[2])
    end
  end
  return rows, rest
end

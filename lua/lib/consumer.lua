--[[
@summary Shares a bot's queue among consumers: which consumer holds which chat, and which updates each of them got.
@key     state        {NN}:queue_state:<bot>  HASH
@key     queue        {NN}:queue:<bot>        STREAM
@key     consumers    {NN}:consumers:<bot>    ZSET
@key     consumption  {NN}:consumption:<bot>  HASH
@key     assigned     {NN}:assigned:<bot>     ZSET
@key     holders      {NN}:holders:<bot>      HASH
]]
-- Every update at or below the cursor (`cur`) is confirmed, sent to a consumer, or in `assigned`. A chat with such
-- unconfirmed updates has a holder: the only consumer that gets updates of this chat.

-- A prime. Squares of smaller numbers are exact in a double.
local CONSUMER_PRIME = 16777213

-- Returns the end of the latest lease in ms, or 0 if the last poll of the bot had no consumer. `poll` is the field of
-- the queue's state. While consumers poll, it is an asterisk and this time, instead of the name of a poll.
local function shared_until(poll)
  return tonumber((poll or ''):match('^%*(%d+)$') or 0)
end

local function consumer_digest(text)
  return tonumber(redis.sha1hex(text):sub(1, 6), 16)
end

-- Returns the other consumers with a lease, those whose lease has ended, the ms until the next lease ends (-1 for none),
-- and the end of the own lease.
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

-- Returns nil if a step of this consumer has something to do: it got or may get updates, or a lease has ended. Otherwise
-- returns the ms until the lease of another consumer ends, or -1 for none.
local function idle_wait(at, name, ms)
  if redis.call('HEXISTS', at.consumption, 's:' .. name) == 1 then return nil end
  if #redis.call('ZRANGE', at.assigned, '[' .. name .. ':', '(' .. name .. ';', 'BYLEX', 'LIMIT', 0, 1) > 0 then return nil end
  local first = redis.call('ZRANGE', at.consumers, 0, 1, 'WITHSCORES')
  if not first[2] or tonumber(first[2]) <= ms then return nil end
  local other = first[first[1] == name and 4 or 2]
  return other and tonumber(other) - ms or -1
end

-- Returns the consumer of a chat without a holder. Each consumer has a weight for each chat, and the highest one wins
-- (rendezvous hashing). If a consumer joins, it therefore gets its share of the chats, and no other chat moves. `seeds`
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

-- Assigns an update to the holder of its chat. If no consumer of `names` holds the chat, picks one. `added` is 1 for an
-- update after the cursor, and 0 for one that another consumer had.
local function assign_update(at, names, seeds, id, chat, added)
  local holder, count = (redis.call('HGET', at.holders, chat) or ''):match('^(%S+) (%d+)$')
  local present = false
  for _, name in ipairs(names) do present = present or name == holder end
  if not present then holder = pick_consumer(names, seeds, chat) end
  redis.call('HSET', at.holders, chat, ('%s %d'):format(holder, (count or 0) + added))
  redis.call('ZADD', at.assigned, 0, ('%s:%016.0f:%s'):format(holder, tonumber(id), chat))
end

-- Call this when an update is confirmed or gone. A chat without unconfirmed updates has no holder.
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

-- Returns the id and the chat of a member of `assigned`.
local function split_assigned(member)
  local id, chat = member:match('^[^:]+:(%d+):(.+)$')
  return ('%.0f'):format(tonumber(id)), chat
end

-- Returns the unconfirmed updates that a consumer got, as arrays of id, chat and bytes.
local function read_sent(at, name)
  local packed = redis.call('HGET', at.consumption, 's:' .. name)
  return packed and cmsgpack.unpack(packed) or {}
end

-- Moves updates of a consumer without a lease to other consumers: those that it got, and at most `budget` others. Returns
-- whether it has no more, and the remaining budget. The score 0 marks a consumer that may have lost some of its chats.
local function take_over(at, names, seeds, name, budget)
  redis.call('ZADD', at.consumers, 0, name)
  local sent = read_sent(at, name)
  for _, each in ipairs(sent) do assign_update(at, names, seeds, each[1], each[2], 0) end
  redis.call('HDEL', at.consumption, 's:' .. name, 'p:' .. name, 'o:' .. name)
  local members = assigned_to(at, name, budget)
  for _, member in ipairs(members) do
    redis.call('ZREM', at.assigned, member)
    local id, chat = split_assigned(member)
    assign_update(at, names, seeds, id, chat, 0)
  end
  local finished = #members < budget
  if finished then redis.call('ZREM', at.consumers, name) end
  return finished, budget - #members - #sent
end

-- Returns the position of an update in a list of updates, or 0.
local function position_of(sent, id)
  for i, each in ipairs(sent) do
    if tonumber(each[1]) == id then return i end
  end
  return 0
end

-- Returns the last update that a consumer may have seen before its stream sent the updates in their present order, or nil
-- if its last poll was no stream. Whoever has seen a later update has seen all that were sent before it. A takeover may
-- give a consumer updates again that it has seen. `moved` is the cursor at the last takeover.
local function stream_floor(former, moved)
  local since = (former or ''):match('^stream (%d+)$')
  return since and math.max(tonumber(since), tonumber(moved or 0))
end

-- Removes the updates below `offset` that a consumer got. The offset must be just above one of them. Otherwise it is not
-- computed from the last answer, and the consumer may not have seen updates that came with that answer. `former` is the
-- last offset. If the consumer repeats it, it may have missed the last answer. The offset then confirms only the update
-- just below it, because the consumer must have seen this update. After a stream, `floor` is set (`stream_floor`), and
-- the updates are in the order in which they were sent. An offset above the floor then confirms the update just below it
-- and those sent before, and any other only the former. Returns the unconfirmed updates and the bytes of the removed ones.
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

-- Removes a limited number of assigned updates that left the queue. They are the first ones of each consumer.
local function drop_missing(at, names)
  if redis.call('ZCARD', at.assigned) <= redis.call('XLEN', at.queue) then return end
  local oldest = redis.call('XRANGE', at.queue, '-', '+', 'COUNT', 1)[1]
  local below = oldest and (':%016.0f'):format(tonumber(oldest[1]:match('^%d+'))) or ';'
  local left = 2 * LIMITS.updates_batch_max
  for _, name in ipairs(names) do
    if left == 0 then return end
    local missing = redis.call('ZRANGE', at.assigned, '[' .. name .. ':', '(' .. name .. below, 'BYLEX', 'LIMIT', 0, left)
    for _, member in ipairs(missing) do
      redis.call('ZREM', at.assigned, member)
      release_update(at, select(2, split_assigned(member)))
    end
    left = left - #missing
  end
end

-- Assigns a limited number of updates after the cursor. `last` is the id of the last update. Returns true if
-- there may be more.
local function assign_new(at, names, seeds, last)
  local before = redis.call('HGET', at.consumption, 'cur')
  local cursor = before
  local entries, _, more = read_within(at.queue, '(' .. cursor .. '-0', '+', LIMITS.updates_batch_max)
  for _, entry in ipairs(entries) do
    cursor = entry[1]:match('^%d+')
    assign_update(at, names, seeds, cursor, entry[2][6], 1)
  end
  if not more and tonumber(cursor) < tonumber(last) then cursor = last end
  if cursor ~= before then redis.call('HSET', at.consumption, 'cur', cursor) end
  if #entries > 0 then drop_missing(at, names) end
  return more
end

-- Adds updates that are assigned to a consumer to those that it got, up to `limit` and a size. Returns how many
-- assigned ones it removed, and whether the consumer may get no more.
local function add_assigned(at, name, sent, limit)
  local bytes = 0
  for _, each in ipairs(sent) do bytes = bytes + each[3] end
  local taken = 0
  for _, member in ipairs(assigned_to(at, name, math.max(0, limit - #sent))) do
    if bytes >= LIMITS.script_read_bytes_max then break end
    redis.call('ZREM', at.assigned, member)
    taken = taken + 1
    local id, chat = split_assigned(member)
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

-- Returns the entries of the updates from position `first` to `last` of those that a consumer got, and all updates that
-- it got. Leaves out those that are no longer in the queue.
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

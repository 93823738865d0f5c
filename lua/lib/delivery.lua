--[[
@summary Manages the pending work of a webhook worker.
         This includes parked chats that wait for a retry, and queue entries after the worker's cursor.
@key     state     {NN}:queue_state:<bot>  HASH
@key     queue     {NN}:queue:<bot>        STREAM
@key     due       {NN}:webhooks_due       ZSET
@key     parked    {NN}:parked:<bot>    ZSET
@key     retries   {NN}:retries:<bot>   ZSET
@key     attempts  {NN}:attempts:<bot>  HASH
]]
-- `at` contains the keys queue, parked, retries and attempts. A parked update stays in the queue. The set `parked`
-- lists the update ids of each chat in order. The set `retries` stores the retry time of each parked chat.
local function parked_member(chat, id)
  return chat .. ':' .. ('%016.0f'):format(tonumber(id))
end

local function parked_ids(at, chat, limit)
  local found = redis.call('ZRANGE', at.parked, '[' .. chat .. ':', '(' .. chat .. ';', 'BYLEX', 'LIMIT', 0, limit)
  for i, member in ipairs(found) do found[i] = ('%.0f'):format(tonumber(member:sub(#chat + 2))) end
  return found
end

local function entry_of(at, id)
  return redis.call('XRANGE', at.queue, id .. '-0', id .. '-0')[1]
end

local function unpark(at, chat, id)
  return redis.call('ZREM', at.parked, parked_member(chat, id)) == 1
end

-- Removes delivered updates from the queue. `acked` lists three values for each update: the id, the bytes and the chat.
-- Returns the bytes of the updates that were still in the queue.
local function remove_acked(at, acked, repeated)
  local bytes, ids, size_of = 0, {}, {}
  for i = 1, #acked, 3 do
    local id, size = acked[i], acked[i + 1]
    if not repeated then
      ids[#ids + 1], size_of[id], bytes = id, size, bytes + size
    elseif redis.call('XDEL', at.queue, id) == 1 then
      bytes = bytes + size
    end
  end
  if #ids == 0 then return bytes end
  local missing = #ids - redis.call('XDEL', at.queue, unpack(ids))
  if missing == 0 then return bytes end
  -- Limits and drops remove updates from the start of the queue, so the missing updates are the oldest in `ids`. If the
  -- script runs a second time for the same call, all updates in `ids` are missing.
  table.sort(ids, function(a, b) return tonumber(a) < tonumber(b) end)
  for i = 1, missing do bytes = bytes - size_of[ids[i]] end
  return bytes
end

-- Call this after a chat's first parked update was removed. Makes the chat's next parked update due immediately, or
-- unparks the chat if no update is left.
local function settle_chat(at, chat, ms)
  redis.call('HDEL', at.attempts, chat)
  if #parked_ids(at, chat, 1) > 0 then
    redis.call('ZADD', at.retries, ms, chat)
  else
    redis.call('ZREM', at.retries, chat)
  end
end

-- Parks updates of a chat until `due`. Skips updates that are no longer in the queue. `tries` is the number of failed
-- attempts for the first update. '0' keeps the stored number.
local function park(at, chat, due, tries, ids)
  local first
  for _, id in ipairs(ids) do
    if entry_of(at, id) then
      first = first or id
      redis.call('ZADD', at.parked, 0, parked_member(chat, id))
    end
  end
  if not first then return end
  redis.call('ZADD', at.retries, due, chat)
  if tries ~= '0' then redis.call('HSET', at.attempts, chat, first .. ' ' .. tries) end
end

local function tries_of(at, chat, id)
  local known, tries = (redis.call('HGET', at.attempts, chat) or ''):match('^(%d+) (%d+)$')
  return known == id and tries or '0'
end

-- Returns the due chats, each with its first updates and the number of failed attempts for the first update. Each
-- returned chat becomes due again after the lease time, so that another worker retries it if this worker dies. Chats
-- that exceed the limits of one script stay due.
local function take_due(at, ms, limit)
  local due, taken, bytes = {}, 0, 0
  if limit == 0 then return due end
  for _, chat in ipairs(redis.call('ZRANGEBYSCORE', at.retries, '-inf', ms, 'LIMIT', 0, limit)) do
    if taken >= LIMITS.webhook_due_entries_max or bytes >= LIMITS.script_read_bytes_max then break end
    local entries = {}
    for _, id in ipairs(parked_ids(at, chat, LIMITS.webhook_chat_batch_max)) do
      local entry = entry_of(at, id)
      taken = taken + 1
      if entry then
        entries[#entries + 1] = entry
        bytes = bytes + entry_bytes(entry[2])
      else
        unpark(at, chat, id)
      end
    end
    if #entries > 0 then
      redis.call('ZADD', at.retries, ms + LIMITS.webhook_lease_ms, chat)
      due[#due + 1] = {chat, tries_of(at, chat, entries[1][1]:match('^%d+')), entries}
    else
      settle_chat(at, chat, ms)
    end
  end
  return due
end

-- Reads the queue entries with ids above `after`. Parks the updates of chats that are already parked. `retry` is nil if
-- no chat is parked. Returns all other updates, the last id that was read, and whether there may be more entries.
local function take_new(at, after, limit, retry)
  local new = {}
  if limit == 0 then return new, after, false end
  local rows, _, more = read_within(at.queue, '(' .. after .. '-0', '+', limit)
  for _, entry in ipairs(rows) do
    local chat = entry[2][6]
    after = entry[1]:match('^%d+')
    if retry and redis.call('ZSCORE', at.retries, chat) then
      redis.call('ZADD', at.parked, 0, parked_member(chat, after))
    else
      new[#new + 1] = entry
    end
  end
  return new, after, more
end

-- Makes parked chats due now if their next retry would be later than `from`. Each call handles a limited number of
-- chats. Returns true if there may be more.
local function retry_chats_now(retries, ms, from)
  local chats = redis.call('ZRANGEBYSCORE', retries, ('(%.0f'):format(from), '+inf', 'LIMIT', 0, LIMITS.script_entries_max)
  for _, chat in ipairs(chats) do redis.call('ZADD', retries, ms, chat) end
  return #chats == LIMITS.script_entries_max
end

-- Returns the time in ms at which the next parked chat is due, or nil if no chat is parked.
local function next_retry(at)
  return tonumber(redis.call('ZRANGE', at.retries, 0, 0, 'WITHSCORES')[2])
end

-- Releases the lease. `due` is the time (ms) at which a worker must check the bot again, or nil if no check is needed
-- before the next update arrives.
local function leave_bot(at, due)
  redis.call('HDEL', at.state, 'leased')
  if due then redis.call('ZADD', at.due, due, at.bot) else redis.call('ZREM', at.due, at.bot) end
end

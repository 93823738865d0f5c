--[[
@summary Reads and writes a bot's update queue: its sequence, limits, dead letters, and wake-ups of workers.
@key     state  {NN}:queue_state:<bot>  HASH
@key     queue  {NN}:queue:<bot>        STREAM
@key     due    {NN}:webhooks_due       ZSET
@err     queue_missing
]]
-- The mask 63 marks a bot that never set `allowed_updates`. The bot then receives the update kinds in the mask 16191
-- (`rules/update_kinds.ts`).
local DEFAULT_MASK, DEFAULT_KINDS = 63, 16191

-- Returns the queue's state, or nil if the queue must be opened first.
local function read_queue(state)
  local s = redis.call('HMGET', state, 'seq', 'inc', 'bytes', 'mask', 'hook', 'leased', 'rung', 'hold',
    'wi', 'wv', 'wp')
  if not s[1] then return nil end
  local q = {seq = tonumber(s[1]), inc = tonumber(s[2]), bytes = tonumber(s[3]), mask = tonumber(s[4]), hook = s[5],
    access_inc = tonumber(s[9]), access = s[10], policy = s[11]}
  if q.mask == DEFAULT_MASK then q.mask = DEFAULT_KINDS end
  if q.hook then q.leased, q.rung, q.hold = tonumber(s[6] or 0), tonumber(s[7] or 0), tonumber(s[8] or 0) end
  return q
end

-- Returns whether `mask` differs from the bot's mask of update kinds. `present` is the current mask of the bot's queue.
-- If the bot has routes, `present` is 0, and the bot's mask is in the field `own`.
local function changes_mask(state, present, mask)
  if mask == '' or mask == present then return false end
  return present ~= '0' or redis.call('HGET', state, 'own') ~= mask
end

-- Stores the mask of update kinds that a bot receives. If the mask changed, also journals it. `present` is the queue's
-- current mask.
local function set_mask(at, present, mask)
  if not changes_mask(at.state, present, mask) then return end
  local own = present == '0' and redis.call('HEXISTS', at.state, 'own') == 1
  local version = next_version(at.meta)
  journal_image(at, version, 'mask:' .. at.bot, cmsgpack.pack({tonumber(mask)}))
  redis.call('HSET', at.state, own and 'own' or 'mask', mask, 'mv', version)
end

-- Packs byte strings as msgpack binaries. cmsgpack would pack the strings as text, but records are not valid text.
local function pack_bytes(list)
  local packed = {'\220' .. struct.pack('>I2', #list)}
  for i, each in ipairs(list) do packed[i + 1] = '\198' .. struct.pack('>I4', #each) .. each end
  return table.concat(packed)
end

-- Removes an entry and journals it as a dead letter. The dead letter has the entry's fields, and also w (reason) and d
-- (time in ms). The dead letter of a webhook route also has l (the slot of the route). An inline query is removed
-- without a dead letter, because nobody waits for its answer any more.
local function dead_letter(q, at, entry, reason, now_ms)
  redis.call('XDEL', at.queue, entry[1])
  local fields = entry[2]
  q.bytes = q.bytes - entry_bytes(fields)
  if fields[2] == 'inline_query' then return end
  -- A replayed update keeps its original id, because the bot may already know the update by this id.
  local update_id = fields[20] or entry[1]:match('^%d+')
  local slot, bot = '', at.bot
  for _, value in ipairs({'w', reason, 'd', ('%.0f'):format(now_ms)}) do fields[#fields + 1] = value end
  if #bot > LIMITS.bot_id_length_max then
    slot, bot = bot:match('^(%d+)' .. ('%d'):rep(LIMITS.bot_id_length_max) .. '$'), bot:match('0*(%d+)$', -LIMITS.bot_id_length_max)
    -- A dead letter of a replay belongs to the queue to which the replay delivers.
    if tonumber(slot) == LIMITS.replay_slot then slot = redis.call('HGET', at.state, 'to') or '0' end
    if slot ~= '0' then fields[#fields + 1], fields[#fields + 2] = 'l', slot end
  end
  journal_image(at, next_version(at.meta), 'dead:' .. bot .. ':' .. update_id, pack_bytes(fields))
  redis.call('HINCRBY', at.state, 'dead', 1)
end

-- Removes the oldest updates: those up to the range end `below`, or `count` updates. Removes at most a fixed number per
-- call. Returns true if more must be removed.
local function confirm_oldest(state, queue, below, count)
  local entries, bytes, more = read_within(queue, '-', below, math.min(count, LIMITS.script_entries_max))
  if #entries == 0 then return false end
  redis.call('XTRIM', queue, 'MINID', (tonumber(entries[#entries][1]:match('%d+')) + 1) .. '-0')
  redis.call('HINCRBY', state, 'bytes', ('%d'):format(-bytes))
  return more and #entries < count
end

local function dead_letter_excess(q, at, now_ms)
  for _ = 1, 16 do
    local entry = redis.call('XRANGE', at.queue, '-', '+', 'COUNT', 1)[1]
    if not entry then return end
    local old = now_ms - tonumber(entry[2][4]) > LIMITS.queue_age_ms_max
    if not old and q.bytes <= LIMITS.queue_bytes_max and redis.call('XLEN', at.queue) < LIMITS.queue_length_max then return end
    dead_letter(q, at, entry, old and 'expired' or 'queue_full', now_ms)
  end
end

-- Call this if updates are pending but no worker serves the bot. Makes the bot due for a worker, so that the next sweep
-- finds the bot. If no worker was woken recently, also sets `at.wake`, which the script returns so that the caller
-- wakes a worker. `at.wake` is a bit mask of queues: bit 0 stands for the bot's own queue, each other bit for the queue
-- of a route.
local function fall_due(q, at, now_ms)
  redis.call('ZADD', at.due, 'LT', math.max(now_ms, q.hold), at.bot)
  if q.hold > now_ms or now_ms - q.rung < LIMITS.webhook_ring_interval_ms then return end
  q.rung = now_ms
  redis.call('HSET', at.state, 'rung', ('%.0f'):format(now_ms))
  at.wake = 1
end

-- Builds the hint of a new update. The hint starts with 'u'. The hint contains the update only if a worker serves the
-- bot, few updates are pending, and the update is small. A hint with an update has twelve fields: first the lengths of
-- all fields, then their values. `store/webhooks/hints.ts` parses the hint.
local function update_hint(q, pending, size, now_ms, entry, made, kind, chat, id, record, from, peer, reply, extra, former)
  if not q.hook or q.leased <= now_ms then return 'u' end
  if pending >= LIMITS.hint_updates_max or size > LIMITS.hint_update_bytes_max then return 'u' end
  return 'u' .. struct.pack('>I2I2I2I2I2I2I2I2I2I2I2I2', #q.hook, #entry, #kind, #made, #chat, #id, #record, #from, #peer,
    #reply, #extra, #former) .. q.hook .. entry .. kind .. made .. chat .. id .. record .. from .. peer .. reply .. extra ..
    former
end

-- Appends an update of one kind. `at` contains the bot and the keys of its queue, and the function may set `at.wake`.
-- `version` is the version of the change. An entry has these fields, in this order: k (kind), t (time in ms), c (chat),
-- m (message or query id), r (record), f (sender), p (chat profile), y (replied record) and x (extra). A replayed
-- update also has u (its original id).
local function push_update(q, at, version, now_ms, kind_bit, kind, chat, id, record, from, peer, reply, extra, former)
  if bit.band(q.mask, kind_bit) == 0 then
    -- If a bot has routes, its mask is 0. The update goes to the first route that takes it, or else to the bot's own
    -- queue. This code is not a separate function, because Redis would create that function in each run of each script
    -- that sends messages.
    local found = q.mask == 0 and redis.call('HMGET', (at.state:gsub('queue_state', 'routes', 1)), 'list', chat)
    if not found or not found[1] then return end
    local command, addressee
    for place, route in ipairs(cmsgpack.unpack(found[1])) do
      local slot, mask, name, percent, listed, _, _, commands, username = unpack(route)
      local takes = bit.band(mask == DEFAULT_MASK and DEFAULT_KINDS or mask, kind_bit) ~= 0
        and (not listed or bit.band(found[2] or 0, 2 ^ place) ~= 0)
        and (percent == LIMITS.route_percent_max
          or tonumber(redis.sha1hex(name .. ':' .. chat):sub(1, 8), 16) % LIMITS.route_percent_max < percent)
      if takes and commands then
        if not command then
          -- Decodes the record at most once, and only for messages and edits (kind bits 1 to 8) that contain a command.
          -- A command in a caption does not count, so the message must be a text (header[6] is 1).
          command, addressee = '', ''
          local start, header, content
          if kind_bit < 16 and record:find('bot_command', 1, true) then start, header = cmsgpack.unpack_one(record) end
          if header and header[6] == 1 then start, content = cmsgpack.unpack_one(record, start) end
          for _, entity in ipairs(content and content.entities or {}) do
            if entity.type == 'bot_command' and entity.offset == 0 then
              command, addressee = content.text:sub(2, entity.length):lower():match('^([^@]*)@?(.*)$')
            end
          end
        end
        takes = commands:find(' ' .. command .. ' ', 1, true) and (addressee == '' or addressee == username)
      end
      local last = -#at.bot - 1
      local bot = ('%.0f'):format(slot) .. ('0'):rep(LIMITS.bot_id_length_max - #at.bot) .. at.bot
      local r = takes and read_queue(at.state:sub(1, last) .. bot)
      if r then
        -- Takes the bot's next id, because update ids are unique within a bot. If updates were replayed into the
        -- route's queue, its last id may be higher than the bot's last id. The new id must be higher than both.
        local inc = incarnation_of(version)
        q.seq = math.max(q.seq + 1 + (inc - q.inc) * LIMITS.incarnation_sequence_skip, r.seq + 1)
        q.inc = inc
        redis.call('HSET', at.state, 'seq', q.seq, 'inc', inc)
        r.seq, r.inc, r.mask = q.seq - 1, inc, kind_bit
        local own = {meta = at.meta, journal = at.journal, state = at.state:sub(1, last) .. bot, queue = at.queue:sub(1, last) .. bot,
          channel = at.channel:sub(1, last) .. bot, due = at.due, bot = bot}
        push_update(r, own, version, now_ms, kind_bit, kind, chat, id, record, from, peer, reply, extra)
        if own.wake then at.wake = bit.bor(at.wake or 0, 2 ^ slot) end
        return
      end
    end
    local woken = at.wake or 0
    q.mask = tonumber(redis.call('HGET', at.state, 'own'))
    if q.mask == DEFAULT_MASK then q.mask = DEFAULT_KINDS end
    if bit.band(q.mask, kind_bit) ~= 0 then
      push_update(q, at, version, now_ms, kind_bit, kind, chat, id, record, from, peer, reply, extra)
    end
    q.mask = 0
    if at.wake then at.wake = bit.bor(at.wake, woken) end
    return
  end
  local inc = incarnation_of(version)
  local step = 1 + (inc - q.inc) * LIMITS.incarnation_sequence_skip
  q.seq = q.seq + step
  local size = #kind + 13 + #chat + #tostring(id) + #record + #from + #peer + #reply + #extra + #(former or '')
  q.bytes = q.bytes + size
  local pending = redis.call('XLEN', at.queue)
  if q.bytes > LIMITS.queue_bytes_max or q.seq % 1000 == 0 or pending >= LIMITS.queue_length_max then
    dead_letter_excess(q, at, now_ms)
  end
  local entry, made = ('%.0f-0'):format(q.seq), ('%.0f'):format(now_ms)
  if former then
    redis.call('XADD', at.queue, entry, 'k', kind, 't', made, 'c', chat, 'm', id, 'r', record, 'f', from, 'p', peer, 'y', reply,
      'x', extra, 'u', former)
  else
    redis.call('XADD', at.queue, entry, 'k', kind, 't', made, 'c', chat, 'm', id, 'r', record, 'f', from, 'p', peer, 'y', reply,
      'x', extra)
  end
  if q.inc == inc then
    redis.call('HSET', at.state, 'seq', q.seq, 'bytes', q.bytes)
  else
    q.inc = inc
    redis.call('HSET', at.state, 'seq', q.seq, 'inc', inc, 'bytes', q.bytes)
  end
  redis.call('SPUBLISH', at.channel, update_hint(q, pending, size, now_ms, entry, made, kind, chat, tostring(id), record, from,
    peer, reply, extra, former or ''))
  if q.hook and q.leased <= now_ms then fall_due(q, at, now_ms) end
end

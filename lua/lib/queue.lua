--[[
@summary A bot's queue of updates: its sequence, its bounds, what happens past them, and whom to wake. Needs partition and stream.
]]
-- The state of a queue, or nil when it must first be opened.
local function read_queue(state)
  local s = redis.call('HMGET', state, 'seq', 'inc', 'bytes', 'mask', 'hook', 'leased', 'rung', 'hold',
    'wi', 'wv', 'wp')
  if not s[1] then return nil end
  local q = {seq = tonumber(s[1]), inc = tonumber(s[2]), bytes = tonumber(s[3]), mask = tonumber(s[4]), hook = s[5],
    access_inc = tonumber(s[9]), access = s[10], policy = s[11]}
  if q.hook then q.leased, q.rung, q.hold = tonumber(s[6] or 0), tonumber(s[7] or 0), tonumber(s[8] or 0) end
  return q
end

-- Notes which kinds of updates a bot asks for, and hands it to Postgres where it differs. `present` is the mask that the queue has.
local function set_mask(at, present, mask)
  if mask == '' or mask == present then return end
  local version = next_version(at.meta)
  journal_image(at, version, 'mask:' .. at.bot, cmsgpack.pack({tonumber(mask)}))
  redis.call('HSET', at.state, 'mask', mask, 'mv', version)
end

-- A list of bytes as the other side reads them: what cmsgpack packs of a string is text there, and a record is none.
local function pack_bytes(list)
  local packed = {'\220' .. struct.pack('>I2', #list)}
  for i, each in ipairs(list) do packed[i + 1] = '\198' .. struct.pack('>I4', #each) .. each end
  return table.concat(packed)
end

-- Takes an entry out and hands it to Postgres as a dead letter: its fields, and w why and d when (ms).
local function bury(q, at, entry, reason, now_ms)
  redis.call('XDEL', at.queue, entry[1])
  local fields = entry[2]
  q.bytes = q.bytes - entry_bytes(fields)
  -- A replay is dead under the id that receivers know.
  local update_id = fields[20] or entry[1]:match('^%d+')
  for _, told in ipairs({'w', reason, 'd', ('%.0f'):format(now_ms)}) do fields[#fields + 1] = told end
  journal_image(at, next_version(at.meta), 'dead:' .. at.bot .. ':' .. update_id, pack_bytes(fields))
  redis.call('HINCRBY', at.state, 'dead', 1)
end

local function bury_beyond_bounds(q, at, now_ms)
  for _ = 1, 16 do
    local entry = redis.call('XRANGE', at.queue, '-', '+', 'COUNT', 1)[1]
    if not entry then return end
    local old = now_ms - tonumber(entry[2][4]) > LIMITS.queue_age_ms_max
    if not old and q.bytes <= LIMITS.queue_bytes_max and redis.call('XLEN', at.queue) < LIMITS.queue_length_max then return end
    bury(q, at, entry, old and 'expired' or 'queue_full', now_ms)
  end
end

-- Something is to be delivered and no worker has the bot: notes it for the sweep, and sets `at.wake` if nobody rang lately.
local function fall_due(q, at, now_ms)
  redis.call('ZADD', at.due, 'LT', math.max(now_ms, q.hold), at.bot)
  if q.hold > now_ms or now_ms - q.rung < LIMITS.webhook_ring_interval_ms then return end
  q.rung = now_ms
  redis.call('HSET', at.state, 'rung', ('%.0f'):format(now_ms))
  at.wake = true
end

-- Appends an update of one kind. `at` names the queue's keys and its bot, and gets `wake`; `version` is the change's. Fields of an entry
-- in this order: k kind, t time (ms), c chat, m message or query id, r record, f sender, p chat, y replied record, x extra, and of
-- an update that is delivered again u the id it had.
local function push_update(q, at, version, now_ms, kind_bit, kind, chat, id, record, from, peer, reply, extra, former)
  if bit.band(q.mask, kind_bit) == 0 then return end
  local inc = incarnation_of(version)
  local step = (q.inc == inc) and 1 or LIMITS.incarnation_sequence_skip + 1
  q.seq = q.seq + step
  local size = #kind + 13 + #chat + #tostring(id) + #record + #from + #peer + #reply + #extra + #(former or '')
  q.bytes = q.bytes + size
  if q.bytes > LIMITS.queue_bytes_max or q.seq % 1000 == 0 or redis.call('XLEN', at.queue) >= LIMITS.queue_length_max then
    bury_beyond_bounds(q, at, now_ms)
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
  redis.call('SPUBLISH', at.channel, 'u')
  if q.hook and q.leased <= now_ms then fall_due(q, at, now_ms) end
end

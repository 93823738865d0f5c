--[[
@summary Finds and installs the webhook routes of a bot. Each route has its own queue in the bot's partition.
@key     routes  {NN}:routes:<bot>  HASH
]]
-- Returns the id of a route's queue as text: the slot, and the id of the bot with 13 digits. `push_update` and
-- `store/core/queue_ids.ts` build the same id.
local function route_queue(bot, slot)
  return ('%.0f'):format(slot) .. ('0'):rep(LIMITS.bot_id_length_max - #bot) .. bot
end

-- Returns the key of a route's queue. `of` is the corresponding key of the bot's own queue.
local function route_key(of, bot, slot)
  return of:sub(1, -#bot - 1) .. route_queue(bot, slot)
end

-- Returns the slot of the queue that takes an update: 0 for the bot's own queue, or nil if no queue takes the update.
-- The bot must have routes. `push_update` follows the same rules. The update must not be a message, so routes with
-- commands, which take only messages, are skipped.
local function slot_for(state, bot, chat, kind_bit)
  local function takes_kind(mask)
    return bit.band(mask == DEFAULT_MASK and DEFAULT_KINDS or mask, kind_bit) ~= 0
  end
  local found = redis.call('HMGET', (state:gsub('queue_state', 'routes', 1)), 'list', chat)
  for place, route in ipairs(found[1] and cmsgpack.unpack(found[1]) or {}) do
    local slot, mask, name, percent, listed, _, _, commands = unpack(route)
    if not commands and takes_kind(mask) and (not listed or bit.band(found[2] or 0, 2 ^ place) ~= 0)
      and (percent == LIMITS.route_percent_max
        or tonumber(redis.sha1hex(name .. ':' .. chat):sub(1, 8), 16) % LIMITS.route_percent_max < percent)
      and redis.call('HEXISTS', route_key(state, bot, slot), 'seq') == 1 then return slot end
  end
  return takes_kind(tonumber(redis.call('HGET', state, 'own') or 0)) and 0 or nil
end

-- Replaces the routes of a bot. `at` contains the keys `state` and `routes`, and `bot`. `r` contains `version` and two
-- lists. In `list`, each route has a slot, mask, name, percentage of chats, whether it lists chats, and two webhook
-- versions as text: the version of its settings ('' if the webhook is paused), and the version at which the route was
-- last set. A route with commands also has their names, between spaces, and the bot's username in lowercase. `chats`
-- contains each listed chat, followed by the routes that list it: bit n stands for route n. While a bot has routes, its
-- own mask is in `own`, and its `mask` is 0, so `push_update` notices routes without a further read.
local function install_routes(at, r)
  local s = redis.call('HMGET', at.state, 'own', 'mask', 'seq', 'inc')
  redis.call('DEL', at.routes)
  redis.call('HSET', at.state, 'routes_version', r.version)
  if #r.list == 0 then
    if s[1] then redis.call('HSET', at.state, 'mask', s[1]) end
    redis.call('HDEL', at.state, 'own')
    return
  end
  for _, route in ipairs(r.list) do
    local state, hook, set = route_key(at.state, at.bot, route[1]), route[6], route[7]
    if redis.call('HEXISTS', state, 'seq') == 0 then
      -- This new queue has no pending updates. Marks all earlier requests to drop updates as done, so that they do not
      -- drop later updates.
      redis.call('HSET', state, 'seq', s[3], 'inc', s[4], 'bytes', 0, 'dropped', r.version)
      if hook ~= '' then
        redis.call('HSET', state, 'hook', hook, 'hook_version', hook, 'hook_set', set, 'since', hook, 'cur', 0)
      end
    end
    redis.call('HSET', state, 'mask', route[2])
  end
  redis.call('HSET', at.routes, 'list', cmsgpack.pack(r.list))
  for i = 1, #r.chats, 2 do redis.call('HSET', at.routes, r.chats[i], r.chats[i + 1]) end
  if not s[1] then redis.call('HSET', at.state, 'own', s[2], 'mask', 0) end
end

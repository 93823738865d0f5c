--[[
@summary Stores a person's unsent text for a chat, and publishes it to the person's open event streams.
@why     Windows write at the same time. Streams must get the changes of a chat in the order of their versions, and the
         record must never exceed its bounds.
@repeatable Storing the same text again changes nothing.
@key     drafts   {NN}:person_drafts:<user>  HASH     chat -> version, a space, and the text; b: bytes of all texts
@key     channel  {NN}:on_user:<user>        CHANNEL
@arg     chat     text
@arg     text     text   empty after the draft was sent or removed
@ok      version  int    the time of the last change in ms, or later; 0 if the chat never had a draft
]]
local stored = redis.call('HGET', drafts_key, chat) or '0 '
local former, was = stored:match('^(%d+) (.*)$')
if was == text then return ok(former) end

local _, ms = now()
local version = ('%.0f'):format(math.max(ms, former + 1))
redis.call('HSET', drafts_key, chat, version .. ' ' .. text)
local bytes = redis.call('HINCRBY', drafts_key, 'b', #text - #was)

local excess = redis.call('HLEN', drafts_key) - 1 - LIMITS.person_drafts_max
if excess > 0 or bytes > LIMITS.person_drafts_bytes_max then
  local all, others = redis.call('HGETALL', drafts_key), {}
  for i = 1, #all, 2 do
    local changed, left = all[i + 1]:match('^(%d+) (.*)$')
    if changed and all[i] ~= chat then
      others[#others + 1] = {chat = all[i], changed = tonumber(changed), bytes = #left}
    end
  end
  -- Removes entries without a text first, and then the oldest drafts.
  table.sort(others, function(a, b)
    if (a.bytes == 0) ~= (b.bytes == 0) then return a.bytes == 0 end
    return a.changed < b.changed
  end)
  for i, other in ipairs(others) do
    if i > excess and bytes <= LIMITS.person_drafts_bytes_max then break end
    redis.call('HDEL', drafts_key, other.chat)
    bytes = bytes - other.bytes
  end
  redis.call('HSET', drafts_key, 'b', ('%.0f'):format(bytes))
end

redis.call('PEXPIRE', drafts_key, 'LIMITS.person_draft_ttl_ms')
redis.call('SPUBLISH', channel_key, 'person_draft ' .. chat .. ' ' .. version .. ' ' .. text)
return ok(version)

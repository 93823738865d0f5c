--[[
@summary Queues updates about changed reaction counts for the bots of channels.
         Each post is reported at most once a second.
@why     The due time and the update must change together. A post therefore stays due if a node dies, and only one of
         several nodes reports the post.
@repeatable A post whose update was queued is no longer due.
@key     due      {NN}:counts_due           ZSET     post -> ms
@arg     limit    int
@args    gone     text    posts that Postgres reports as deleted
@ok      sent     int
@ok      more     flag    more posts are due
@ok      missing  texts   records to read from Postgres first, in groups of four: status, post, ticket, chat or 0
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end
for _, post in ipairs(gone) do redis.call('ZREM', due_key, post) end

local seconds, ms = now()
local sent, missing = 0, {}

-- Postpones a post that needs records from Postgres. Otherwise the post would be retried constantly while Postgres is
-- unreachable.
local function postpone(post, status, key, chat)
  redis.call('ZADD', due_key, 'XX', ('%.0f'):format(ms + LIMITS.counts_interval_ms_min), post)
  for _, value in ipairs({status, post, leave_ticket(key .. ':ticket', token, inc), chat}) do missing[#missing + 1] = value end
end

local function tell(p, c)
  local counts = {}
  for i = 1, #p.fields, 2 do
    local emoji = p.fields[i]:match('^n:(.*)')
    if emoji then
      counts[#counts + 1] = {emoji, tonumber(p.fields[i + 1]), tonumber(get_field(p, 'f:' .. emoji))}
    end
  end
  local version = next_version(meta_key)
  -- The update shows nothing of the post's message except the date.
  local record = tombstone({[3] = seconds, [5] = 0}, version)
  if post_update(meta_key, outbox_key, version, ms, c.bots, '', 'message_reaction_count', p.chat, p.message, record, c.profile, '', '',
    cmsgpack.pack(counts)) then
    sent = sent + 1
  end
end

local posts = redis.call('ZRANGEBYSCORE', due_key, '-inf', ('%.0f'):format(ms), 'LIMIT', 0, limit)
for _, post in ipairs(posts) do
  local p = read_post(post_key(post))
  local chat = p and not p.deleted and chat_key(p.chat)
  local c = chat and read_chat(chat, inc)
  if not p then
    postpone(post, 'post_missing', post_key(post), '0')
  elseif chat and not c then
    postpone(post, 'chat_missing', chat, p.chat)
  else
    if c then tell(p, c) end
    redis.call('ZREM', due_key, post)
  end
end
return ok(sent, #posts == tonumber(limit) and 1 or 0, missing)

--[[
@summary Tells the bots of their channels how often each emoji stands on posts that changed, each post once a second at most.
@why     What is due and the update move together: a node that dies leaves it due, and of several one tells it.
@repeatable What was told is due no more.
@include partition
@include clock
@include message
@include chat
@include control
@include outbox
@include post
@key     meta     {NN}:meta                 HASH
@key     outbox   {NN}:outbox               STREAM
@key     due      {NN}:counts_due           ZSET     post -> ms
@derived post     {NN}:post:<post>          HASH
@derived chat     {NN}:chat:<chat>          HASH
@arg     run      text
@arg     token    text    ticket to leave where something must be read back
@arg     limit    int
@args    gone     text    posts that Postgres knows to be no more
@ok      told     int
@ok      more     flag    others are due
@ok      missing  texts   what must be read back first, in turn: status, post, ticket, chat or 0
@err     stale_run
@err     outbox_full
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end
for _, post in ipairs(gone) do redis.call('ZREM', due_key, post) end

local seconds, ms = now()
local told, missing = 0, {}

-- What is missing now waits behind what is due: Postgres may be away for long.
local function put_off(post, status, key, chat)
  redis.call('ZADD', due_key, 'XX', ('%.0f'):format(ms + LIMITS.counts_interval_ms_min), post)
  for _, value in ipairs({status, post, leave_ticket(key .. ':ticket', token), chat}) do missing[#missing + 1] = value end
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
  -- A message of which the date alone is told.
  local record = tombstone({[3] = seconds, [5] = 0}, version)
  if post_update(meta_key, outbox_key, version, ms, c.bots, '', 'message_reaction_count', p.chat, p.message, record, c.profile, '', '',
    cmsgpack.pack(counts)) then
    told = told + 1
  end
end

local posts = redis.call('ZRANGEBYSCORE', due_key, '-inf', ('%.0f'):format(ms), 'LIMIT', 0, limit)
for _, post in ipairs(posts) do
  local p = read_post(post_key(post))
  local chat = p and not p.deleted and chat_key(p.chat)
  local c = chat and read_chat(chat, inc)
  if not p then
    put_off(post, 'post_missing', post_key(post), '0')
  elseif chat and not c then
    put_off(post, 'chat_missing', chat, p.chat)
  else
    if c then tell(p, c) end
    redis.call('ZREM', due_key, post)
  end
end
return ok(told, #posts == tonumber(limit) and 1 or 0, missing)

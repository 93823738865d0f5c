--[[
@summary Sets or removes one of a user's emoji on a post, or removes all the user's reactions.
@why     The script changes the counts, the membership check and the journal in one step, because two nodes may serve
         the same user at once.
@combine 8
@flag    allow-oom
@key     user_ticket   {NN}:acted:<post>:<user>:ticket    STRING
@key     channel       {NN}:on_post:<post>                CHANNEL
@key     due           {NN}:counts_due                    ZSET     post -> ms
@arg     reaction  bytes   msgpack array of text: post, partition, number, what (set, remove, clear, or erase for a
                           deleted user), emoji, user
@arg     external  bytes   16 bytes: the user's external id
@arg     known     text    the user's reactions in Postgres, separated by spaces; - if not read yet
@ok      changed   flag
@ok      own       text    the user's reactions now, separated by spaces
@ok      fields    raw     the post's complete record
@err     user_missing     ticket text
@err     too_many
@err     chat_missing     ticket text chat int
@err     member_missing   ticket text chat int
]]
local post, partition, number, what, emoji, user = unpack(cmsgpack.unpack(reaction))
local why, inc = closed(meta_key, journal_key, run, what ~= 'set' and LIMITS.journal_reserve)
if why == 'stale_run' then return refuse('stale_run') end
local p = read_post(post_key)
if not p then return refuse('post_missing', leave_ticket(post_ticket_key, token, inc)) end
local refusal, c, channel
if what ~= 'erase' then
  refusal, c, channel = hidden(p, chat_prefix, member_prefix, user, inc, token)
  if refusal then return refuse(refusal, c, channel) end
elseif p.deleted then
  return refuse('not_found')
end
local own, generation = find_actor(p, acted_prefix, user)
if not own then
  if known == '-' or not has_ticket(user_ticket_key, token, inc) then
    return refuse('user_missing', leave_ticket(user_ticket_key, token, inc))
  end
  own = known
end

-- Returns the current reactions. Another call by this user may have changed them since the first call with this request
-- id.
if remembered(request_key) then return ok(0, own, p.fields) end
local answer = p.chat .. ' ' .. p.message
local set, had, rest, touched = what == 'set', 0, {}, {}
for each in own:gmatch('%S+') do
  had = had + 1
  if not set and (what == 'clear' or what == 'erase' or each == emoji) then touched[#touched + 1] = each else rest[#rest + 1] = each end
end
if set and not has_emoji(own, emoji) then
  if had >= LIMITS.reactions_per_user_max then return refuse('too_many') end
  touched[1], rest[had + 1] = emoji, emoji
end
if #touched == 0 then
  remember(request_key, answer)
  return ok(0, own, p.fields)
end
if why then return refuse('journal_full') end

local seconds, ms = now()
advance_generation(p, post_key, acted_prefix, meta_key, ms)
local acted, new, place, version = acted_key(p.now), table.concat(rest, ' '), partition .. ':' .. number, nil
-- The external id is encoded as binary by hand, because cmsgpack would pack it as text.
local tail = cmsgpack.pack(seconds) .. '\196\16' .. external
local versions = next_versions(meta_key, 2 * #touched)
local at = {meta = meta_key, journal = journal_key}
for i, each in ipairs(touched) do
  version = versions[i]
  local image = set and '\147' .. cmsgpack.pack(each) .. tail or ''
  journal_image(at, version, ('react:%s:%s:%s'):format(place, user, emoji_column(each)), image, acted)
end
keep_actor(p, acted_prefix, user, own, generation, new, version)
redis.call('DEL', user_ticket_key, post_ticket_key)
local users = p.users + (new ~= '' and 1 or 0) - (own ~= '' and 1 or 0)
set_field(p, 'u', tostring(users))
local gone = {}
for i, each in ipairs(touched) do
  version = versions[#touched + i]
  local n, f = 'n:' .. each, 'f:' .. each
  local count, first = tonumber(get_field(p, n) or 0) + (set and 1 or -1), get_field(p, f) or version
  -- Journals even a count of zero, because the newest journaled count of a post also tells Postgres how many people
  -- have reacted to the post.
  journal_image(at, version, ('tally:%s:%s'):format(place, emoji_column(each)),
    cmsgpack.pack({each, count, tonumber(first), users}), post_key)
  if count > 0 then
    set_field(p, n, tostring(count))
    set_field(p, f, first)
    if set then add_reactor(p, each, external) else drop_reactor(p, each, external) end
  else
    for _, name in ipairs({n, f, 'l:' .. each, 'o:' .. each}) do gone[#gone + 1] = name end
  end
end
set_field(p, 'v', version)
write_post(post_key, p)
redis.call('SPUBLISH', channel_key, '')
remember(request_key, answer)
-- Schedules an update with the new counts, unless the channel is in Redis and has no bots.
if not c or c.bots ~= '' then
  redis.call('ZADD', due_key, 'NX', ('%.0f'):format(ms + LIMITS.counts_interval_ms_min), post)
end
if #gone == 0 then return ok(1, new, p.fields) end
redis.call('HDEL', post_key, unpack(gone))
return ok(1, new, redis.call('HGETALL', post_key))

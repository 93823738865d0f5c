--[[
@summary Reads and writes a post's record in Redis: exact reaction counts, latest reactors, and recent actors.
@key     post         {NN}:post:<post>                HASH
@key     post_ticket  {NN}:post:<post>:ticket         STRING
@derived post         {NN}:post:<post>                HASH
@derived acted        {NN}:acted:<post>:<generation>  HASH
@err     post_missing    ticket text
@err     not_found
]]
-- Reads the whole record of a post at once, because scripts return the whole record after their changes. Fields:
--   c          channel
--   m          message id
--   v          version of the last journaled change
--   u          number of users with a reaction
--   x          set once the post is deleted
--   g, gp      current and previous generation of recent actors
--   gt         start of g (ms)
--   n:<emoji>  number of users of the emoji
--   f:<emoji>  version of the first use
--   l:<emoji>  latest reactors, newest first, 16 bytes of external id each
--   o:<emoji>  earlier reactors, in the same form
local function read_post(post)
  local fields = redis.call('HGETALL', post)
  local p = {fields = fields, at = {}, changes = {}}
  for i = 1, #fields, 2 do p.at[fields[i]] = i + 1 end
  local function field(name) return fields[p.at[name]] end
  p.chat, p.message, p.deleted = field('c'), field('m'), field('x')
  if not p.chat then return nil end
  p.users, p.now, p.before, p.since = tonumber(field('u')), field('g') or '0', field('gp'), tonumber(field('gt') or 0)
  return p
end

local function get_field(p, name)
  return p.fields[p.at[name]]
end

-- Sets a field in the record `p`, which the script returns, and marks the field for write_post.
local function set_field(p, name, value)
  local n = #p.changes
  p.changes[n + 1], p.changes[n + 2] = name, value
  local at = p.at[name]
  if not at then
    at = #p.fields + 2
    p.fields[at - 1], p.at[name] = name, at
  end
  p.fields[at] = value
end

local function write_post(post, p)
  redis.call('HSET', post, unpack(p.changes))
  redis.call('PERSIST', post)
end

-- Returns nil and the channel if `who` (a user or bot) may see the post. Otherwise returns the error, a fill ticket and
-- the channel's id.
local function hidden(p, chat_prefix, member_prefix, who, inc, token)
  if p.deleted then return 'not_found' end
  local chat = chat_prefix .. p.chat
  local c = read_chat(chat, inc)
  if not c then return 'chat_missing', leave_ticket(chat .. ':ticket', token, inc), p.chat end
  if c.kind == 'channel' then return nil, c end
  local key = member_prefix .. p.chat .. ':' .. who
  local member = read_member(key, inc)
  if not member then return 'member_missing', leave_ticket(key .. ':ticket', token, inc), p.chat end
  if not is_member(member) then return 'not_found' end
  return nil, c
end

-- Returns a user's reactions as emoji separated by spaces, and the generation (a HASH of users' reactions) that
-- contains them. Returns nil if the reactions must be read from Postgres. The current and the previous generation
-- contain all reactions that are not yet in Postgres. If they contain all reactors of the post, a user in neither
-- generation has no reactions.
local function find_actor(p, acted_prefix, user)
  local here = 0
  p.actors = {}
  for _, generation in ipairs({p.now, p.before}) do
    local found = redis.call('HMGET', acted_prefix .. generation, user, 'n')
    local actors = tonumber(found[2] or 0)
    p.actors[generation] = actors
    if found[1] then return found[1], generation end
    here = here + actors
  end
  if here == p.users then return '' end
  return nil
end

-- If the current generation is old, starts a new generation. The record then no longer names the generation before the
-- old one, so a flush must have set an expiry on that generation first.
local function advance_generation(p, post, acted_prefix, meta, ms)
  if p.since == 0 then
    redis.call('HSET', post, 'gt', ('%.0f'):format(ms))
  elseif ms - p.since > LIMITS.acted_generation_ms
    and not (p.before and redis.call('PTTL', acted_prefix .. p.before) == -1) then
    p.before, p.now = p.now, next_version(meta)
    redis.call('HSET', post, 'g', p.now, 'gp', p.before, 'gt', ('%.0f'):format(ms))
  end
end

-- Stores a user's reactions in the current generation. The field n of a generation counts its users with reactions.
local function keep_actor(p, acted_prefix, user, old, generation, new, version)
  local key = acted_prefix .. p.now
  local more = new ~= '' and 1 or 0
  if generation and old ~= '' then
    if generation == p.now then more = more - 1 else redis.call('HINCRBY', acted_prefix .. generation, 'n', -1) end
  end
  if generation and generation ~= p.now then redis.call('HDEL', acted_prefix .. generation, user) end
  -- Sets the count `n` of users instead of incrementing it, because a new generation has no `n` yet.
  redis.call('HSET', key, user, new, 'v', version, 'n', (p.actors[p.now] or 0) + more)
  redis.call('PERSIST', key)
end

local function has_emoji(own, emoji)
  return (' ' .. own .. ' '):find(' ' .. emoji .. ' ', 1, true) ~= nil
end

local function place_of(list, external)
  local at = list:find(external, 1, true)
  while at and (at - 1) % 16 ~= 0 do at = list:find(external, at + 1, true) end
  return at
end

-- Puts a reactor at the front of an emoji's list. The newest reactors are in a separate short field, so most changes
-- write only this field.
local function add_reactor(p, emoji, external)
  local latest, older = 'l:' .. emoji, 'o:' .. emoji
  local list = external .. (get_field(p, latest) or '')
  if #list > LIMITS.reactors_latest_max * 16 then
    set_field(p, older, (list .. (get_field(p, older) or '')):sub(1, LIMITS.reactors_kept_max * 16))
    list = ''
  end
  set_field(p, latest, list)
end

-- Removes a reactor from the two lists of an emoji. A person who reacted long ago may not be in these lists.
local function drop_reactor(p, emoji, external)
  for _, name in ipairs({'l:' .. emoji, 'o:' .. emoji}) do
    local list = get_field(p, name) or ''
    local at = place_of(list, external)
    if at then
      set_field(p, name, list:sub(1, at - 1) .. list:sub(at + 16))
      return
    end
  end
end

-- Returns the number that identifies an emoji in Postgres: 52 bits of its digest.
local function emoji_column(emoji)
  return ('%.0f'):format(tonumber(redis.sha1hex(emoji):sub(1, 13), 16))
end

-- Returns the post id of a channel message, or nil for a service message.
local function post_of(key, header, segments_at)
  if segments_at < 0 then return nil end
  local origin = redis.call('GETRANGE', key, segments_at + header[8] + header[9], -1)
  if origin == '' then return nil end
  local behind = cmsgpack.unpack_one(origin)
  if behind < 0 then return nil end
  local _, post = cmsgpack.unpack_one(origin, behind)
  return post
end

-- Deletes the post of a deleted message, and the post's recent actors. A record that marks the post as deleted stays in
-- Redis until the deletion is flushed. Without this record, a fill could restore the post.
local function end_post(post, at, chat, message_id)
  if not post then return end
  local id = ('%.0f'):format(post)
  local key = at.post_prefix .. id
  local version = next_version(at.meta)
  for _, generation in ipairs(redis.call('HMGET', key, 'g', 'gp')) do
    if generation then redis.call('UNLINK', at.acted_prefix .. id .. ':' .. generation) end
  end
  -- Deletes generation 0 explicitly, because a post without a later generation has no field `g`.
  redis.call('UNLINK', at.acted_prefix .. id .. ':0')
  redis.call('DEL', key, key .. ':ticket')
  redis.call('HSET', key, 'c', chat, 'm', message_id, 'x', 1, 'u', 0, 'v', version)
  journal_image(at, version, ('post:%.0f:%.0f'):format(post % LIMITS.partitions_max,
    math.floor(post / LIMITS.partitions_max)), '', key)
end

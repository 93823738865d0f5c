--[[
@summary Adds people from Postgres to an emoji's list of latest reactors.
         If no people are given, creates a ticket to load them.
@why     A person may have removed the emoji after the caller read Postgres. The recent actors in Redis show this.
@repeatable A reactor is listed only once.
@flag    allow-oom
@key     ticket  {NN}:post:<post>:refill:ticket   STRING
@arg     emoji     text
@args    reactors  bytes   ids and external ids (16 bytes) alternating, newest first
@ok      ticket    text
@ok      listed    int     length of the list now
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if #reactors == 0 then return ok(leave_ticket(ticket_key, token, inc), 0) end
local p = read_post(post_key)
if not has_ticket(ticket_key, token, inc) or not p or not get_field(p, 'n:' .. emoji) then
  return ok(token, LIMITS.reactors_kept_max)
end
local latest, older = get_field(p, 'l:' .. emoji) or '', get_field(p, 'o:' .. emoji) or ''
local list = older
for i = 1, #reactors, 2 do
  local own
  for _, generation in ipairs({p.now, p.before}) do
    own = own or redis.call('HGET', acted_key(generation), reactors[i])
  end
  local id = reactors[i + 1]
  if (not own or has_emoji(own, emoji)) and not place_of(latest, id) and not place_of(list, id) then list = list .. id end
end
list = list:sub(1, LIMITS.reactors_kept_max * 16)
if list ~= older then redis.call('HSET', post_key, 'o:' .. emoji, list) end
return ok(token, (#latest + #list) / 16)

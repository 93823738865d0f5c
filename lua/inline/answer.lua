--[[
@summary Stores a bot's answer to an inline query, and wakes the front that waits for the answer.
@why     A query can be answered once. The same step stores the answer and counts the bot's answers.
@derived query    {NN}:inline_query:<id>           STRING
@derived answer   {NN}:inline_answer:<id>          HASH    l list, q query, b bot, u user if only this person may choose,
                                                           and r:<result id> with the message of each result
@derived cache    {NN}:inline_cache:<bot>:<digest> STRING  id of the answer
@key     answers  {NN}:inline_answers:<bot>        ZSET    `id:bytes` by expiry (ms)
@key     bytes    {NN}:inline_bytes:<bot>          STRING  size of these answers
@key     channel  {NN}:on_inline:<bot>             CHANNEL
@arg     id       text
@arg     bot      text
@arg     cache_s  int     how long the answer may be used for the same query
@arg     personal flag    whether it may be used for this person only
@arg     list     bytes   what people see of the results
@args    results  bytes   ids of results and their messages, alternating
@err     too_old
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
if redis.call('EXISTS', request_key) == 1 then return ok() end
local open = redis.call('GET', query_key(id))
if not open then return refuse('too_old') end
local asked, user, query, own_digest, digest = unpack(cmsgpack.unpack(open))
if asked ~= bot then return refuse('too_old') end

local _, ms = now()
local function remove(member)
  local former, size = member:match('^(%d+):(%d+)$')
  redis.call('UNLINK', answer_key(former))
  redis.call('ZREM', answers_key, member)
  redis.call('DECRBY', bytes_key, size)
end
local ended = redis.call('ZRANGE', answers_key, '-inf', ('%.0f'):format(ms), 'BYSCORE', 'LIMIT', 0, LIMITS.script_entries_max)
for _, member in ipairs(ended) do remove(member) end
local size = #list + #query
for i = 1, #results do size = size + #results[i] end
while redis.call('ZCARD', answers_key) >= LIMITS.inline_answers_max or
  tonumber(redis.call('GET', bytes_key) or 0) + size > LIMITS.inline_answers_bytes_max do
  local first = redis.call('ZRANGE', answers_key, 0, 0)[1]
  if not first then break end
  remove(first)
end

local key, cached = answer_key(id), tonumber(cache_s) * 1000
local ttl = ('%.0f'):format(math.max(cached, LIMITS.inline_choice_ms))
-- An answer that is not shared with others can be used only by the person who sent the query.
local chooser = (personal or cached == 0) and user or ''
redis.call('DEL', query_key(id))
redis.call('HSET', key, 'l', list, 'q', query, 'b', bot, 'u', chooser)
for i = 1, #results, 2 do redis.call('HSET', key, 'r:' .. results[i], results[i + 1]) end
redis.call('PEXPIRE', key, ttl)
redis.call('ZADD', answers_key, ('%.0f'):format(ms + ttl), id .. ':' .. size)
redis.call('INCRBY', bytes_key, size)
-- Both keys expire when the last answer expires.
local last = redis.call('ZRANGE', answers_key, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', answers_key, last)
redis.call('PEXPIREAT', bytes_key, last)
if cached > 0 then redis.call('SET', cache_key(personal and own_digest or digest), id, 'PX', cached) end
redis.call('SPUBLISH', channel_key, id)
remember(request_key, 1)
return ok()

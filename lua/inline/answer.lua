--[[
@summary Stores a bot's answer to an inline query, and wakes the front that waits for the answer.
@why     A query can be answered only once. The same step stores and counts the answer.
@derived query    {NN}:inline_query:<id>           STRING
@derived answer   {NN}:inline_answer:<id>          HASH    l list, q query, b bot, u user if only this person may choose,
                                                           and r:<result id> with the message of each result
@derived cache    {NN}:inline_cache:<bot>:<digest> STRING  id of the answer
@key     answers  {NN}:inline_answers:<bot>        LIST    `id:bytes:digest`, oldest first; no digest if not cached
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

local size = #list + #query
for i = 1, #results do size = size + #results[i] end
-- Removes the oldest answers first, because people are still choosing from the newest answers. An expired answer counts
-- towards the limit until it is removed here.
while redis.call('LLEN', answers_key) >= LIMITS.inline_answers_max or
  tonumber(redis.call('GET', bytes_key) or 0) + size > LIMITS.inline_answers_bytes_max do
  local oldest = redis.call('LPOP', answers_key)
  if not oldest then break end
  local former, former_size, former_digest = oldest:match('^(%d+):(%d+):(.*)$')
  redis.call('UNLINK', answer_key(former))
  if former_digest ~= '' and redis.call('GET', cache_key(former_digest)) == former then
    redis.call('UNLINK', cache_key(former_digest))
  end
  redis.call('DECRBY', bytes_key, former_size)
end

local key, cached = answer_key(id), tonumber(cache_s) * 1000
local found_by = cached == 0 and '' or personal and own_digest or digest
local ttl = ('%.0f'):format(math.max(cached, LIMITS.inline_choice_ms))
-- If an answer is personal or not cached, only the person who asked may use it.
local chooser = (personal or cached == 0) and user or ''
redis.call('DEL', query_key(id))
redis.call('HSET', key, 'l', list, 'q', query, 'b', bot, 'u', chooser)
for i = 1, #results, 2 do redis.call('HSET', key, 'r:' .. results[i], results[i + 1]) end
redis.call('PEXPIRE', key, ttl)
redis.call('RPUSH', answers_key, id .. ':' .. size .. ':' .. found_by)
redis.call('INCRBY', bytes_key, size)
-- The list of answers and their total size expire when the last answer expires.
for _, counted in ipairs({answers_key, bytes_key}) do
  redis.call('PEXPIRE', counted, ttl, 'NX')
  redis.call('PEXPIRE', counted, ttl, 'GT')
end
if found_by ~= '' then redis.call('SET', cache_key(found_by), id, 'PX', cached) end
redis.call('SPUBLISH', channel_key, id)
remember(request_key, 1)
return ok()

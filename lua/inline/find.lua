--[[
@summary Finds a cached answer to an inline query.
@flag    no-writes
@key     meta    {NN}:meta                        HASH
@key     state   {NN}:queue_state:<bot>           HASH
@derived cache   {NN}:inline_cache:<bot>:<digest> STRING
@derived answer  {NN}:inline_answer:<id>          HASH
@arg     checked text    version of the write policy for which the person was checked; may be empty
@args    digests text    of the query, for this person and for everybody
@ok      id      text    empty if there is no answer
@ok      list    bytes   what people see of the results; empty if there is no answer
@err     unchecked  version text
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
for _, digest in ipairs(digests) do
  local id = redis.call('GET', cache_key(digest))
  local list = id and redis.call('HGET', answer_key(id), 'l')
  if list then
    local access_inc, version, policy = unpack(redis.call('HMGET', state_key, 'wi', 'wv', 'wp'))
    -- If the copy of the bot's write policy is missing or outdated, finds nothing, so that the caller asks the bot. The
    -- script inline/ask then reports that the copy is missing.
    if tonumber(access_inc or -1) ~= inc then break end
    if policy ~= 'all' and version ~= checked then return refuse('unchecked', version) end
    return ok(id, list)
  end
end
return ok('', '')

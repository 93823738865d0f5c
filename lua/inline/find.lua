--[[
@summary Finds a cached answer to an inline query.
@flag    no-writes
@derived cache   {NN}:inline_cache:<bot>:<digest>  STRING
@derived answer  {NN}:inline_answer:<id>           HASH
@args    digests text    of the query, for this person and for everybody
@ok      id      text    empty if there is no answer
@ok      list    bytes   what people see of the results; empty if there is no answer
]]
for _, digest in ipairs(digests) do
  local id = redis.call('GET', cache_key(digest))
  local list = id and redis.call('HGET', answer_key(id), 'l')
  if list then return ok(id, list) end
end
return ok('', '')

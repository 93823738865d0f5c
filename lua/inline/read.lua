--[[
@summary Reads the answer to an inline query, or the message of one result in the answer.
@flag    no-writes
@derived answer  {NN}:inline_answer:<id>  HASH
@arg     id      text
@arg     user    text
@arg     field   text    l for the list, or r:<result id>
@ok      value   bytes   empty if there is no such result
@ok      bot     text
@ok      query   text
@err     no_answer
]]
local a = redis.call('HMGET', answer_key(id), 'u', 'b', 'q', field)
if not a[1] or (a[1] ~= '' and a[1] ~= user) then return refuse('no_answer') end
return ok(a[4] or '', a[2], a[3])

--[[
@summary Returns the stored answer of a request made under an idempotency key, and the record it created.
@flag    no-writes
@ok      answer  text
@ok      record  bytes?
@err     unknown
]]
local answer, record = remembered(request_key)
if not answer then return refuse('unknown') end
return ok(answer, record or false)

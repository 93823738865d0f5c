--[[
@summary Returns the stored answer of a call with an idempotency key, and the record that the call created.
@flag    no-writes
@ok      answer  text
@ok      record  bytes?
@err     unknown
]]
local answer, record = remembered(request_key)
if not answer then return refuse('unknown') end
return ok(answer, record or false)

--[[
@summary Tells what a request of a call under an idempotency key was answered, and the record that it made.
@flag    no-writes
@include request
@key     request  {NN}:req:<id>   STRING
@ok      answer  text
@ok      record  bytes?
@err     unknown
]]
local answer, record = remembered(request_key)
if not answer then return refuse('unknown') end
return ok(answer, record or false)

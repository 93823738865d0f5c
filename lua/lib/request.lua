--[[
@summary Remembering that a request was answered, so that a repeated one is answered alike and changes nothing.
]]
-- Every success is remembered, one that had nothing to change too: what it found may have changed when it comes again. A
-- refusal is not: it may be asked anew.
-- A request of a call with an idempotency key is remembered as long as the key: its node may have died before it could
-- note the answer, and the client may come back hours later.
local function remember(request, answer)
  local keyed = request:find(':req:once.', 1, true)
  redis.call('SET', request, answer, 'PX', keyed and LIMITS.idempotency_ttl_ms or LIMITS.request_id_ttl_ms)
end

--[[
@summary Remembering that a request was applied, so that a repeated one is answered and changes nothing.
]]
-- A request of a call with an idempotency key is remembered as long as the key: its node may have died before it could
-- note the answer, and the client may come back hours later. One of a call in the answer to a delivery, until a worker that died
-- before it could acknowledge has surely been followed by another.
local function remember(request, answer)
  local keyed = request:find(':req:once.', 1, true)
  local answered = request:find(':req:answer.', 1, true)
  local ttl = keyed and LIMITS.idempotency_ttl_ms or answered and LIMITS.answer_request_ttl_ms or LIMITS.request_id_ttl_ms
  redis.call('SET', request, answer, 'PX', ttl)
end

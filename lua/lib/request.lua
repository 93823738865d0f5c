--[[
@summary Remembering that a request was answered, so that a repeated one is answered alike and changes nothing.
]]
-- A script looks here first: what it would refuse now may have come to be after it was applied. Every success is
-- remembered, one that had nothing to change too; a refusal is not, and may be asked anew.
--
-- A request of a call with an idempotency key is remembered as long as the key: its node may have died before it could
-- note the answer, and the client may come back hours later. With it stays the record of what it made, which may be gone
-- by then. One of a call in the answer to a delivery stays until a worker that died before it could acknowledge has surely been
-- followed by another; other requests come again within seconds.
local function is_keyed(request)
  return request:find(':req:once.', 1, true) ~= nil
end

local function remember(request, answer, record)
  local keyed = is_keyed(request)
  if keyed and record then answer = answer .. '\n' .. record end
  local of_answer = request:find(':req:answer.', 1, true)
  local ttl = of_answer and 'LIMITS.answer_request_ttl_ms' or 'LIMITS.request_id_ttl_ms'
  redis.call('SET', request, answer, 'PX', keyed and 'LIMITS.idempotency_ttl_ms' or ttl)
end

-- What a request was answered, and the record that stays with it; nil for a new one.
local function remembered(request)
  local kept = redis.call('GET', request)
  if not kept then return nil end
  local cut = kept:find('\n', 1, true)
  if not cut then return kept end
  return kept:sub(1, cut - 1), kept:sub(cut + 1)
end

--[[
@summary Remembers answered requests, so that a repeated request gets the same answer and changes nothing.
@key     request  {NN}:req:<id>  STRING
]]
-- Scripts look up the request before they validate it, because the change that the request made may have made it
-- invalid. Every success is remembered, even if nothing changed. Errors are not remembered, so a client can retry the
-- request. A request under an idempotency key is remembered as long as the key: the node may have died before it stored
-- the answer, and the client may retry hours later. The created record is stored too, because it may be deleted by
-- then. If a worker dies before it acknowledges an update, another worker repeats the calls in the webhook's answer.
-- These requests are therefore remembered until another worker has certainly taken over. Other requests are repeated
-- within seconds.
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

-- Returns the stored answer of a request and the record stored with it, or nil for a new request.
local function remembered(request)
  local kept = redis.call('GET', request)
  if not kept then return nil end
  local cut = kept:find('\n', 1, true)
  if not cut then return kept end
  return kept:sub(1, cut - 1), kept:sub(cut + 1)
end

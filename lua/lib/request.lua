--[[
@summary Stores the answers of requests, so that a repeated request gets the same answer and changes nothing.
@key     request  {NN}:req:<id>  STRING
@after   save_answers
]]
-- Scripts look up the request before they validate it, because the change that the request made may have made it
-- invalid. Every success is remembered, even if nothing changed. Errors are not remembered, so a client can retry the
-- request. A request under an idempotency key is remembered as long as the key: the node may have died before it stored
-- the answer, and the client may retry hours later. The created record is stored too, because the message may be
-- deleted by then. If a worker dies before it acknowledges an update, another worker repeats the calls in the webhook's
-- answer. These requests are therefore remembered until another worker has certainly taken over. All other requests are
-- repeated only within seconds, and only by the process that made them.
--
-- In a combined run, the answers to these requests share one key, which is written once. The request id of such a call
-- is the name of this key, a colon and the two-digit number of the call. The value has a line for each answer: the
-- number, a space and the answer. If the outcome of a run is unknown, its calls are repeated one by one. The repeated
-- calls read and extend the same value. If a run finds its key, its calls have already been repeated, and the run is
-- refused.

-- Contains the answers of a combined run that are stored under one shared key. The field `key` is this key.
local run_answers = {}

-- Raises an error if this run was repeated. Checks once for all calls of the run.
local function check_run(key)
  if run_answers.key then return end
  if redis.call('EXISTS', key) == 1 then error('the calls of this run were repeated') end
  run_answers.key = key
end

-- Writes the answers that share a key. Runs after all calls of a combined run.
local function save_answers()
  if #run_answers == 0 then return end
  redis.call('SET', run_answers.key, table.concat(run_answers), 'PX', 'LIMITS.request_id_ttl_ms')
end

local function remember(request, answer, record)
  -- If the third-to-last character of the request id is a colon, the request id consists of a shared key, a colon and
  -- the number of the call.
  if request:byte(-3) == 58 then
    local key, line = request:sub(1, -4), request:sub(-2) .. ' ' .. answer .. '\n'
    if combined then run_answers[#run_answers + 1] = line end
    if combined then return end
    redis.call('SET', key, (redis.call('GET', key) or '') .. line, 'PX', 'LIMITS.request_id_ttl_ms')
    return
  end
  local keyed = request:find(':req:once.', 1, true)
  if keyed and record then answer = answer .. '\n' .. record end
  local of_answer = request:find(':req:answer.', 1, true)
  local ttl = of_answer and 'LIMITS.answer_request_ttl_ms' or 'LIMITS.request_id_ttl_ms'
  redis.call('SET', request, answer, 'PX', keyed and 'LIMITS.idempotency_ttl_ms' or ttl)
end

-- Returns the request's stored answer and the record stored with it. Returns nil for a new request.
local function remembered(request)
  if request:byte(-3) == 58 then
    if combined then return check_run(request:sub(1, -4)) end
    return ('\n' .. (redis.call('GET', request:sub(1, -4)) or '')):match('\n' .. request:sub(-2) .. ' ([^\n]*)')
  end
  local kept = redis.call('GET', request)
  if not kept then return nil end
  local cut = kept:find('\n', 1, true)
  if not cut then return kept end
  return kept:sub(1, cut - 1), kept:sub(cut + 1)
end

--[[
@summary Writes the change log of a chat. Event streams read this log.
         The log exists only while somebody reads the chat, and for some time afterwards.
@key     changes  {NN}:changes:<chat>  STREAM
@key     channel  {NN}:on_chat:<chat>  CHANNEL
@derived changes  {NN}:changes:<chat>  STREAM
@derived channel  {NN}:on_chat:<chat>  CHANNEL
]]
-- Creates a chat's change log, or extends its lifetime. The log expires some time after an event stream last read it.
local function keep_log(changes, ttl_ms)
  local left = redis.call('PTTL', changes)
  if left >= ttl_ms then return end
  if left == -2 then
    redis.call('XADD', changes, '0-1', 'p', '0')
    redis.call('XDEL', changes, '0-1')
  end
  redis.call('PEXPIRE', changes, ttl_ms)
end

-- Adds a change to the log of a chat. If nobody has read the chat recently, there is no log and the function adds
-- nothing. A later reader notices from the chat's version that it missed a change. `before` is the version of the
-- chat's previous change, so a reader that has seen `before` has missed nothing. Kinds: n (new), e (edited), d
-- (deleted), a (answer to a callback query; only the user `to` receives `extra`) and p (pinned; `id` is 0 after an
-- unpin, and `extra` is 1 to notify viewers).
local function log_change(changes, channel, version, before, kind, id, to, extra)
  -- Checks first whether a log exists, because the check is cheaper than formatting an entry that is not stored.
  if redis.call('EXISTS', changes) == 0 then return end
  local logged = redis.call('XADD', changes, 'NOMKSTREAM', 'MAXLEN', '~', 'LIMITS.changes_log_length_max',
    version .. '-0', 'p', before or '0', 'k', kind, 'm', id, 'u', to or '', 'x', extra or '')
  if logged then redis.call('SPUBLISH', channel, '') end
end

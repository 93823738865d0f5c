--[[
@summary The change log of a chat, which exists while someone watches the chat. Event streams are served and resumed from it.
]]
-- Creates the log of a chat, or extends its life. It expires some time after the last stream read it.
local function keep_log(changes, ttl_ms)
  local left = redis.call('PTTL', changes)
  if left >= ttl_ms then return end
  if left == -2 then
    redis.call('XADD', changes, '0-1', 'p', '0')
    redis.call('XDEL', changes, '0-1')
  end
  redis.call('PEXPIRE', changes, ttl_ms)
end

-- Without recent readers there is no log and nothing to do: a later reader notices that the chat has changed. `before`
-- is the version of the chat's previous change: a reader that knows it has missed nothing. Kinds: n new, e edited, d
-- deleted, a answer to a callback query (`extra` is only for the user `to`), p pinned (`id` is 0 after an unpin;
-- `extra` is 1 if viewers should be notified).
local function log_change(changes, channel, version, before, kind, id, to, extra)
  -- Checking first is cheaper than formatting an entry that is not stored.
  if redis.call('EXISTS', changes) == 0 then return end
  local logged = redis.call('XADD', changes, 'NOMKSTREAM', 'MAXLEN', '~', 'LIMITS.changes_log_length_max',
    version .. '-0', 'p', before or '0', 'k', kind, 'm', id, 'u', to or '', 'x', extra or '')
  if logged then redis.call('SPUBLISH', channel, '') end
end

--[[
@summary The log of what changed in a chat while somebody looks, from which event streams are served and resumed.
]]
-- Begins the log of a chat, or keeps it for so long from now if that is longer: it goes some time after the last stream looked.
local function keep_log(changes, ttl_ms)
  local left = redis.call('PTTL', changes)
  if left >= ttl_ms then return end
  if left == -2 then
    redis.call('XADD', changes, '0-1', 'p', '0')
    redis.call('XDEL', changes, '0-1')
  end
  redis.call('PEXPIRE', changes, ttl_ms)
end

-- Where nobody looked lately there is no log, and nobody to tell: whoever comes finds that the chat changed since.
-- `before` is the version of the chat's former change: a reader that knows it has missed nothing. Kinds: n new, e edited,
-- d deleted, a answer to a callback query (then `extra` is for the user `to` alone), p pinned (`id` is 0 when none is any more;
-- `extra` is 1 when those who look are to be notified).
local function log_change(changes, channel, version, before, kind, id, to, extra)
  -- To ask first is cheaper than to spell an entry for nobody.
  if redis.call('EXISTS', changes) == 0 then return end
  local logged = redis.call('XADD', changes, 'NOMKSTREAM', 'MAXLEN', '~', 'LIMITS.changes_log_length_max',
    version .. '-0', 'p', before or '0', 'k', kind, 'm', id, 'u', to or '', 'x', extra or '')
  if logged then redis.call('SPUBLISH', channel, '') end
end

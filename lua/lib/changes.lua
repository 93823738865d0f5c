--[[
@summary The log of what changed in a chat lately, from which event streams are served and resumed.
]]
-- `before` is the version of the chat's former change: a reader that knows it has missed nothing. Kinds: n new, e edited,
-- d deleted, a answer to a callback query (then `extra` is for the user `to` alone), p pinned (`id` is 0 when none is any more;
-- `extra` is 1 when those who look are to be notified).
local function log_change(changes, channel, version, before, kind, id, to, extra)
  redis.call('XADD', changes, 'MAXLEN', '~', LIMITS.changes_log_length_max, ('%.0f-0'):format(version),
    'p', before or '0', 'k', kind, 'm', id, 'u', to or '', 'x', extra or '')
  redis.call('PEXPIRE', changes, LIMITS.changes_log_ttl_ms)
  redis.call('SPUBLISH', channel, '')
end

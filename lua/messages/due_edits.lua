--[[
@summary Returns the pending edits that are due, and removes edits that can never be applied.
@why     Only one of several nodes takes an edit. If that node dies, the edit is due again a second later.
@repeatable An edit that was taken is due again later. An edit is removed only once.
@flag    allow-oom
@arg     limit    int
@args    gone     text    edits to remove: chat:message and token, in turn
@ok      edits    texts   chat:message, token, editor, whether the editor is the bot of an inline message (1 or 0) and the
                          editor's profile (JSON), in turn
@ok      wait_ms  int?    time until the next edit is due; null if there is none
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
for i = 1, #gone, 2 do pending_edit_of(pending_key, edits_due_key, gone[i]).drop(gone[i + 1]) end
local _, ms = now()
local edits = {}
for _, place in ipairs(redis.call('ZRANGEBYSCORE', edits_due_key, '-inf', ('%.0f'):format(ms), 'LIMIT', 0, limit)) do
  local packed = redis.call('HGET', pending_key, place)
  local edit_token, editor, _, _, _, profile, by_way = unpack(cmsgpack.unpack(packed))
  redis.call('ZADD', edits_due_key, ('%.0f'):format(ms + LIMITS.pending_edit_retry_ms), place)
  for _, value in ipairs({place, edit_token, editor, by_way and '1' or '0', profile}) do edits[#edits + 1] = value end
end
local first = redis.call('ZRANGE', edits_due_key, 0, 0, 'WITHSCORES')
return ok(edits, first[2] and ('%.0f'):format(math.max(0, first[2] - ms)) or false)

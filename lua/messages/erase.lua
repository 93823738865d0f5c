--[[
@summary Deletes messages in a chat because they are too old or because an account was deleted.
         Unpins the pinned message if it is deleted.
@why     Redis and Postgres must delete a message together, or a fill would restore it. Also, a pin must not outlive its
         message.
@repeatable Deleted messages are skipped.
@flag    allow-oom
@arg     chat     text
@arg     age_ms   int     younger messages in Redis are kept; the caller has checked those only in Postgres
@args    items    text    message ids, at most LIMITS.messages_batch_max, each followed by its post id (or empty) and its
                          date (s)
@ok      erased   int
]]
local why, inc = closed(meta_key, journal_key, run, LIMITS.journal_reserve)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local seconds = now()
local oldest = seconds - tonumber(age_ms) / 1000
local found = {}
for i = 1, #items, 3 do
  -- Builds a header for a message that is only in Postgres. The tombstone of such a message needs only a version and a
  -- date.
  local header = header_of(message_key(items[i])) or {[3] = tonumber(items[i + 2]), [5] = 0, [6] = KIND_TEXT}
  if tonumber(items[i]) <= c.seq and header[6] ~= KIND_DELETED and header[3] <= oldest then
    found[#found + 1] = {id = items[i], post = tonumber(items[i + 1]), header = header}
  end
end
if #found == 0 then return ok(0) end
if why then return refuse('journal_full') end

local at = {meta = meta_key, journal = journal_key, chat = chat_key, changes = changes_key, channel = channel_key,
  message_prefix = message_prefix, post_prefix = post_prefix, acted_prefix = acted_prefix}
local version, unpin
for _, each in ipairs(found) do
  version = write_tombstone(at, chat, each.id, each.header, each.post)
  unpin = unpin or c.pin == each.id
end
-- Sends no event for each deletion. A client that shows the chat finds a gap in the change log and reloads the chat.
c.changed = version
close_removal(at, c, chat, version, unpin)
if not unpin then redis.call('SPUBLISH', channel_key, '') end
return ok(#found)

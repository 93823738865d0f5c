--[[
@summary Sends messages from a bot to a user, all or none, with consecutive ids.
@why     The message ids, messages, journal and change log must change together, because two nodes may send at once. The
         bot gets no update about its own messages, so this script contains no code for queues. Bots call this script
         most often.
@combine 16
@arg     chat      text    <bot>.<user>
@arg     reply_to  text    id of the message that all of them reply to, or empty
@arg     keep      text    r to store the record of a single message with its idempotency key, so that a repeat returns it;
                           then k if the first message has a reply keyboard, or s if only some members see it
@args    tails     bytes   the records without version and date, at most LIMITS.messages_batch_max
@ok      first     int     id of the first message; the others follow in order
@ok      date      int     Unix time in s
@ok      peer      bytes   the user's profile
@ok      reply     bytes?  record of the replied message
]]
local why, inc, version, journaled = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(chat_key .. ':ticket', token, inc)) end
local done = remembered(request_key)
if done then
  local first, date = done:match('(%d+) (%d+)')
  return ok(first, date, c.profile, present_reply(message_prefix, reply_to))
end
-- While the user blocks the bot, neither side can write.
if c.kind == 'blocked' then return refuse('blocked') end
local reply, refused = read_reply(c, message_prefix, reply_to, token, inc)
if refused then return refused end
if why then return refuse('journal_full') end

local seconds = now()
local at = {meta = meta_key, journal = journal_key, changes = changes_key, channel = channel_key,
  message_prefix = message_prefix, version = version, journaled = journaled}
local first, record
for i = 1, #tails do
  local id
  id, record = append_next(at, c, chat, seconds, tails[i])
  first = first or id
end
touch_chat(chat_key, c, at.version)
if keep ~= '' and keep ~= 'r' then note_keyboard(at, c, chat_key, chat, first, keep:match('s$')) end
-- Writes the count of a single message as the text '1', because Lua converts numbers to text slowly.
local count = #tails == 1 and '1' or #tails
remember(request_key, first .. ' ' .. seconds .. ' 0 ' .. count, count == '1' and keep:find('r') and record)
return ok(first, seconds, c.profile, reply)

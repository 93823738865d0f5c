--[[
@summary Sends messages from a user to a bot, all or none, with consecutive ids.
@why     The message ids, messages, journal, change log and the bot's queue must change together, because two nodes may
         send at once.
@combine 16
@arg     chat      text    <bot>.<user>
@arg     reply_to  text    id of the message that all of them reply to, or empty
@arg     from      bytes   the user's profile for the bot's updates
@arg     keep      text    r to store the record of a single message with its idempotency key, so that a repeat returns it;
                           then k if the first message has a reply keyboard, or s if only some members see it
@args    tails     bytes   the records without version and date, at most LIMITS.messages_batch_max
@ok      first     int     id of the first message; the others follow in order
@ok      date      int     Unix time in s
@ok      peer      bytes   the user's profile
@ok      reply     bytes?  record of the replied message
@ok      wake      int     queues to wake, one bit for each slot
]]
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local done = remembered(request_key)
if done then
  local first, date = done:match('(%d+) (%d+)')
  return ok(first, date, c.profile, present_reply(message_prefix, reply_to), 0)
end
-- While the user blocks the bot, neither side can write. If the user starts the bot again, the bot is unblocked first.
if c.kind == 'blocked' then return refuse('blocked') end
local q = read_queue(queue_state_key)
if not q then return refuse('queue_missing') end
local no = refused_writer(q, chat_key, inc)
if no then return no end
local reply, refused = read_reply(c, message_prefix, reply_to, token, inc)
if refused then return refused end
if why then return refuse('journal_full') end

local seconds, ms = now()
local at = {meta = meta_key, journal = journal_key, changes = changes_key, channel = channel_key,
  message_prefix = message_prefix}
local own = {meta = meta_key, journal = journal_key, state = queue_state_key, queue = queue_key, channel = bot_channel_key,
  due = due_key, bot = chat:match('^%d+')}
local first, record, version
for i = 1, #tails do
  local id
  id, record, version = append_message(at, c, chat, seconds, tails[i])
  first = first or id
  push_update(q, own, version, ms, 1, 'message', chat, id, record, from, '', reply or '', '')
end
touch_chat(chat_key, c, version)
if keep ~= '' and keep ~= 'r' then note_keyboard(at, c, chat_key, chat, first, keep:match('s$')) end
-- Writes the count of a single message as the text '1', because Lua converts numbers to text slowly.
local count = #tails == 1 and '1' or #tails
remember(request_key, first .. ' ' .. seconds .. ' 0 ' .. count, count == '1' and keep:find('r') and record)
return ok(first, seconds, c.profile, reply, own.wake or 0)

--[[
@summary Sends messages to a group or channel, all or none, with consecutive ids.
         In a channel, the messages become posts.
@why     The membership check, the message ids, the messages, the journal and the updates for bots must change in one
         step.
@combine 16
@derived post           {NN}:post:<post>                HASH
@arg     chat      text
@arg     sender    text    id of the user or bot
@arg     reply_to  text    id of the message that all of them reply to, or empty
@arg     from      bytes   the sender's profile
@arg     partition text    the chat's partition
@arg     keep      text    r to store the record of a single message with its idempotency key, so that a repeat returns it;
                           then k if the first message has a reply keyboard, or s if only some members see it
@args    tails     bytes   the records without version and date, at most LIMITS.messages_batch_max
@ok      first     int     id of the first message; the others follow in order
@ok      date      int     Unix time in s
@ok      peer      bytes   the chat's profile
@ok      reply     bytes?  record of the replied message
@ok      forward   flag    the outbox has new entries
@ok      post      int     id of the first post, 0 in a group; the post numbers of the others follow in order
@err     chat_closed
]]
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local done = remembered(request_key)
if done then
  local first, date, post = done:match('(%d+) (%d+) (%d+)')
  return ok(first, date, c.profile, present_reply(message_prefix, reply_to), 0, post)
end
local member = read_member(member_key, inc)
if not member then return refuse('member_missing', leave_ticket(member_ticket_key, token, inc)) end
if not is_member(member) then return refuse('not_member', c.kind) end
if c.kind == 'closed' then return refuse('chat_closed') end
if is_channel(c) and not has_right(member, 'can_post_messages') then return refuse('not_allowed') end
for i = 1, #tails do
  local kind_refused = forbidden_kind(member, c, tails[i])
  if kind_refused then return refuse('not_permitted', kind_refused) end
end
local reply, refused = read_reply(c, message_prefix, reply_to, token, inc)
if refused then return refused end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local seconds, ms = now()
local at = {meta = meta_key, journal = journal_key, changes = changes_key, channel = channel_key,
  message_prefix = message_prefix, partition = partition, post_prefix = is_channel(c) and post_prefix}
local kind = is_channel(c) and 'channel_post' or 'message'
local bots = receiving_bots(c, sender)
local first, first_post, record, version, forward
for i = 1, #tails do
  local id, post
  id, record, version, post = append_message(at, c, chat, seconds, tails[i])
  first, first_post = first or id, first_post or post
  if post_update(meta_key, outbox_key, version, ms, bots, sender, kind, chat, id, record, from, c.profile, reply or '', '') then
    forward = true
  end
end
touch_chat(chat_key, c, version)
if keep ~= '' and keep ~= 'r' then note_keyboard(at, c, chat_key, chat, first, keep:match('s$')) end
-- Writes the count of a single message as the text '1', because Lua converts numbers to text slowly.
local count = #tails == 1 and '1' or #tails
remember(request_key, first .. ' ' .. seconds .. ' ' .. first_post .. ' ' .. count, count == '1' and keep:find('r') and record)
return ok(first, seconds, c.profile, reply, forward and 1 or 0, first_post)

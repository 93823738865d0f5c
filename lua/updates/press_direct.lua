--[[
@summary Handles a press of an inline button in a direct chat. Queues a callback query for the bot.
@why     The button must still exist at the moment when the query is queued.
@arg     press      bytes   msgpack array: chat, message id, user, data, partition as three digits,
                           whether the press grants an edit
@arg     from       bytes   the user's profile
@arg     extra      bytes   further fields of the update
@ok      query_id   text
@ok      wake       int     queues to wake, one bit for each slot
@err     inline     bot text
]]
local chat, message_id, user, data, partition, grants = unpack(cmsgpack.unpack(press))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local done = redis.call('GET', request_key)
if done then return ok(done, 0) end
if c.kind == 'blocked' then return refuse('blocked') end
local q = read_queue(queue_state_key)
if not q then return refuse('queue_missing') end
local no = refused_writer(q, chat_key, inc)
if no then return no end
if tonumber(message_id) > c.seq then return refuse('not_found') end
local record = redis.call('GET', message_key)
if not record then return refuse('message_missing', leave_ticket(message_ticket_key, token, inc)) end
local header, start = read_header(record)
if header[6] == KIND_DELETED then return refuse('not_found') end
local _, markup, origin = read_segments(record, header, start)
-- If a person sent the message as an inline result, the caller must use updates/press_inline instead.
if is_inline(header) then return refuse('inline', via_bot(header, origin)) end
local bot = chat:match('^%d+')
if ('%.0f'):format(header[5]) ~= bot or not has_button(markup, data) then return refuse('no_button') end
if why then return refuse('journal_full') end

local _, ms = now()
local version = next_version(meta_key)
local id = open_query(query_prefix, version, partition, chat, user, bot)
if grants then grant_edit(granted_key) end
local at = {meta = meta_key, journal = journal_key, state = queue_state_key, queue = queue_key, channel = bot_channel_key, bot = bot,
  due = due_key}
push_update(q, at, version, ms, 16, 'callback_query', chat, id, record, from, '', '', extra)
remember(request_key, id)
return ok(id, at.wake or 0)

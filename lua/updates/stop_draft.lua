--[[
@summary Stops a draft, and queues an update that tells the bot about the stop.
         Hides the draft from the person unless the draft must stay visible.
@why     The update and the mark that hides later changes must be written together.
@repeatable A stopped draft stays stopped, so a second run adds no update.
@key     channel      {NN}:on_chat:<chat>      CHANNEL
@key     queue_state  {NN}:queue_state:<bot>  HASH
@key     bot_channel  {NN}:on_bot:<bot>       CHANNEL
@arg     chat  text
@arg     id    text    id of the draft
@arg     from  bytes   the user's profile
@ok      wake  int     queues to wake, one bit for each slot
@err     not_found
]]
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
local d = read_draft(draft_key)
if not d or d.id ~= id or not d.flags:find('s') then return refuse('not_found') end
if d.stopped then return ok(0) end
if c.kind == 'blocked' then return refuse('blocked') end
local q = read_queue(queue_state_key)
if not q then return refuse('queue_missing') end
local no = refused_writer(q, chat_key, inc)
if no then return no end
if why then return refuse('journal_full') end

local _, ms = now()
local version = next_version(meta_key)
local at = {meta = meta_key, journal = journal_key, state = queue_state_key, queue = queue_key, channel = bot_channel_key,
  bot = chat:match('^%d+'), due = due_key}
push_update(q, at, version, ms, STOPPED_GENERATION_BIT, 'stopped_message_generation', chat, id, dated(ms, version), from, '',
  '', '')
stop_draft(draft_key, d)
redis.call('SPUBLISH', channel_key, 'draft_stopped ' .. id .. (d.flags:find('k') and ' k' or ' -'))
return ok(at.wake or 0)

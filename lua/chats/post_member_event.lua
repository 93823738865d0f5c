--[[
@summary Sends the updates of a membership change: one to the bot whose membership changed, another to the other bots of the chat.
@why     The event's mark is set together with the updates, so that a repeated call adds nothing.
@include partition
@include clock
@include message
@include chat
@include outbox
@key     meta     {NN}:meta                 HASH
@key     journal  {NN}:journal              STREAM
@key     chat     {NN}:chat:<chat>          HASH
@key     ticket   {NN}:chat:<chat>:ticket   STRING
@key     request  {NN}:req:<id>             STRING
@key     outbox   {NN}:outbox               STREAM
@arg     run     text
@arg     chat    text
@arg     event   text    id of the event
@arg     own     text    the bot whose membership changed, or empty
@arg     record  bytes   a service message that describes the change
@arg     from    bytes   profile of the user who made the change
@arg     token   text    fill ticket if the chat is missing in Redis
@ok      forward  flag   the outbox has new entries
@err     stale_run
@err     journal_full
@err     outbox_full
@err     chat_missing  ticket text
]]
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
if redis.call('EXISTS', request_key) == 1 then return ok(0) end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token)) end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local _, ms = now()
local own_sent = own ~= '' and post_update(meta_key, outbox_key, next_version(meta_key), ms, own, '', 'my_chat_member', chat, event,
  record, from, c.profile, '', '')
local others = post_update(meta_key, outbox_key, next_version(meta_key), ms, c.bots, own, 'chat_member', chat, event, record, from,
  c.profile, '', '')
redis.call('SET', request_key, 1, 'PX', LIMITS.member_event_mark_ms)
return ok((own_sent or others) and 1 or 0)

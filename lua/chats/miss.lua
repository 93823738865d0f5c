--[[
@summary Returns a chat's record. If the chat is not in Redis, creates a ticket to load it from Postgres.
@repeatable A second miss shares the ticket.
@flag    allow-oom
@ok      seq     int
@ok      profile bytes
@ok      bots    text
@ok      kind    text
@ok      pin     int     id of the pinned message or 0
@ok      keyboards text  ids of the messages whose reply keyboards are shown, comma-separated
@err     missing ticket text
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local c = read_chat(chat_key, inc)
if not c then return refuse('missing', leave_ticket(ticket_key, token, inc)) end
return ok(c.seq, c.profile, c.bots, c.kind, c.pin, redis.call('HGET', chat_key, 'kb') or '')

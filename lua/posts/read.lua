--[[
@summary Reads a post and a user's reactions to it. Refuses if the user or bot may not see the post.
@repeatable A second read finds the same record or the same ticket.
@flag    allow-oom
@arg     who       text    id of the user or bot
@arg     ttl_ms    int     renews the time to live of a post that expires
@ok      fields    raw     the post's complete record
@ok      own       text?   the user's reactions, separated by spaces; null when only Postgres knows
@err     chat_missing     ticket text chat int
@err     member_missing   ticket text chat int
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local p = read_post(post_key)
if not p then return refuse('post_missing', leave_ticket(post_ticket_key, token, inc)) end
local refusal, ticket, channel = hidden(p, chat_prefix, member_prefix, who, inc, token)
if refusal then return refuse(refusal, ticket, channel) end
redis.call('PEXPIRE', post_key, ttl_ms, 'XX')
return ok(p.fields, find_actor(p, acted_prefix, who) or false)

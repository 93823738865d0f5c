--[[
@summary Reads a post and a user's reactions to it, if the user or bot may see it.
@repeatable A second read finds the same, or the same ticket.
@include partition
@include message
@include chat
@include control
@include post
@flag    allow-oom
@key     meta          {NN}:meta                          HASH
@key     post          {NN}:post:<post>                   HASH
@key     post_ticket   {NN}:post:<post>:ticket            STRING
@derived acted         {NN}:acted:<post>:<generation>     HASH
@derived chat          {NN}:chat:<chat>                   HASH
@derived member        {NN}:member:<chat>:<who>           STRING
@arg     run       text
@arg     token     text    fill ticket for records missing in Redis
@arg     who       text    id of the user or bot
@arg     ttl_ms    int     renews the time to live of a post that expires
@ok      fields    raw     the post's complete record
@ok      own       text?   the user's reactions, separated by spaces; null when only Postgres knows
@err     stale_run
@err     post_missing     ticket text
@err     chat_missing     ticket text chat int
@err     member_missing   ticket text chat int
@err     not_found
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local p = read_post(post_key)
if not p then return refuse('post_missing', leave_ticket(post_ticket_key, token)) end
local refusal, ticket, channel = hidden(p, chat_prefix, member_prefix, who, inc, token)
if refusal then return refuse(refusal, ticket, channel) end
redis.call('PEXPIRE', post_key, ttl_ms, 'XX')
return ok(p.fields, find_actor(p, acted_prefix, who) or false)

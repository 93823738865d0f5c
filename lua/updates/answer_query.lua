--[[
@summary Stores a bot's answer to a callback query.
         The user who pressed the button receives the answer through the event stream.
@why     A query can be answered only once.
@flag    allow-oom
@key     query    {NN}:callback_query:<id>   STRING
@derived chat     {NN}:chat:<chat>           HASH
@arg     id       text
@arg     bot      text
@arg     answer   bytes   the answer for the user's event stream
@err     too_old
]]
if redis.call('HGET', meta_key, 'run') ~= run then return refuse('stale_run') end
if redis.call('EXISTS', request_key) == 1 then return ok() end
local open = redis.call('GET', query_key)
if not open then return refuse('too_old') end
local chat, user, asked = open:match('^(%S+) (%S+) (%S+)$')
if asked ~= bot then return refuse('too_old') end

redis.call('DEL', query_key)
local version = next_version(meta_key)
local before = redis.call('HGET', chat_key(chat), 'c')
if before then redis.call('HSET', chat_key(chat), 'c', version) end
log_change(changes_key(chat), channel_key(chat), version, before, 'a', id, user, answer)
remember(request_key, 1)
return ok()

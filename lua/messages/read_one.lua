--[[
@summary Reads one message, as far as it is hot.
@flag    no-writes
@key     chat     {NN}:chat:<chat>                HASH
@key     message  {NN}:msg:<chat>:<message_id>    STRING
@ok      newest   int?     the chat's last message id; null when the chat is not hot
@ok      peer     bytes?
@ok      record   bytes?
]]
local c = redis.call('HMGET', chat_key, 's', 'p')
return ok(c[1], c[2], redis.call('GET', message_key))

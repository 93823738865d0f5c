--[[
@summary Says whether a chat is hot, and leaves a ticket for its fill if it is not.
@include message
@key     chat    {NN}:chat:<chat>          HASH
@key     ticket  {NN}:chat:<chat>:ticket   STRING
@arg     token   text
@ok      seq     int
@ok      profile bytes
@ok      bots    text
@err     missing ticket text
]]
local c = redis.call('HMGET', chat_key, 's', 'p', 'b')
if not c[1] then return refuse('missing', leave_ticket(ticket_key, token)) end
return ok(c[1], c[2], c[3] or '')

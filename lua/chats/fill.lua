--[[
@summary Puts a chat that was read back from Postgres where it was missed.
@why     A fill needs its ticket and an absent key, so that a sequence never goes back.
@key     chat    {NN}:chat:<chat>          HASH
@key     ticket  {NN}:chat:<chat>:ticket   STRING
@arg     token    text
@arg     seq      int     last message id in Postgres
@arg     version  int     version of the last change in Postgres
@arg     inc      int     incarnation under which the sequence was last raised
@arg     profile  bytes
@arg     profile_version int
@arg     bots     text    ids of a group's bots, comma-separated
@arg     ttl_ms   int
@ok      filled   flag
]]
if redis.call('GET', ticket_key) ~= token or redis.call('EXISTS', chat_key) == 1 then return ok(0) end
redis.call('HSET', chat_key, 's', seq, 'i', inc, 'v', version, 'c', version,
  'p', profile, 'pv', profile_version, 'b', bots)
redis.call('PEXPIRE', chat_key, ttl_ms)
redis.call('DEL', ticket_key)
return ok(1)

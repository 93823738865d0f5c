--[[
@summary After a committed change, updates the copies of the profile, bots and permissions in a chat's record.
@repeatable Each version is written only once.
@flag    allow-oom
@key     chat    {NN}:chat:<chat>          HASH
@key     ticket  {NN}:chat:<chat>:ticket   STRING
@key     channel {NN}:on_chat:<chat>       CHANNEL
@arg     profile          bytes
@arg     profile_version  int
@arg     kind             text    direct, blocked, group, channel, private, person or closed
@arg     bots             text
@arg     permissions      text    the permissions of members that differ from the defaults
@ok      refreshed  flag
]]
redis.call('DEL', ticket_key)
local present = redis.call('HGET', chat_key, 'pv')
if not present or tonumber(present) >= tonumber(profile_version) then return ok(0) end
redis.call('HSET', chat_key, 'p', profile, 'pv', profile_version, 't', kind, 'b', bots, 'd', permissions)
redis.call('SPUBLISH', channel_key, '')
return ok(1)

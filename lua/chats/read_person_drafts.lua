--[[
@summary Returns a person's unsent texts.
@flag    no-writes
@key     drafts  {NN}:person_drafts:<user>  HASH  chat -> version, a space, and the text; b: bytes of all texts
@ok      fields  raw   chats and their values, alternating, and also b and its value
]]
return ok(redis.call('HGETALL', drafts_key))

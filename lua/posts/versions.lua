--[[
@summary Returns the versions of posts. A post that is deleted or not in Redis has version 0.
@flag    no-writes
@derived post      {NN}:post:<post>   HASH
@args    posts     text
@ok      versions  texts
]]
local versions = {}
for i, post in ipairs(posts) do
  local p = redis.call('HMGET', post_key(post), 'v', 'x')
  versions[i] = not p[2] and p[1] or '0'
end
return ok(versions)

--[[
@summary Deletes the prefix of an outbox that has entered the queues of all its bots.
@repeatable The prefix is gone after the first time.
@flag    allow-oom
@key     outbox  {NN}:outbox  STREAM
@arg     last    text    id of the last entry that was forwarded
@ok      left    int
]]
local ms, seq = last:match('(%d+)-(%d+)')
redis.call('XTRIM', outbox_key, 'MINID', ms .. '-' .. (tonumber(seq) + 1))
return ok(redis.call('XLEN', outbox_key))

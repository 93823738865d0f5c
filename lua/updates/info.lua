--[[
@summary Reads the data of a bot's queue for getWebhookInfo.
@flag    no-writes
@key     state  {NN}:queue_state:<bot>  HASH
@key     queue  {NN}:queue:<bot>        STREAM
@ok      pending  int
@ok      mask     int?
@ok      failed   int?   Unix time in s of the last failed delivery
@ok      why      text?
@ok      strayed  int?   Unix time in s when a worker was last found dead
@ok      now      int    Unix time in s
]]
local s = redis.call('HMGET', state_key, 'mask', 'err_at', 'err', 'strayed')
local seconds = now()
return ok(redis.call('XLEN', queue_key), s[1], s[2], s[3], s[4], seconds)

--[[
@summary Reads the data of a bot's queue for getWebhookInfo.
@flag    no-writes
@key     state  {NN}:queue_state:<bot>  HASH
@key     queue  {NN}:queue:<bot>        STREAM
@key     retries  {NN}:retries:<bot>    ZSET
@ok      pending  int
@ok      mask     int?
@ok      failed   int?   Unix time in s of the last failed delivery
@ok      why      text?
@ok      strayed  int?   Unix time in s when a worker was last found dead
@ok      now      int    Unix time in s
@ok      dead     int    number of updates that became dead letters
@ok      next     int?   time in ms of the next retry
]]
local s = redis.call('HMGET', state_key, 'mask', 'err_at', 'err', 'strayed', 'own', 'dead', 'hold')
local seconds = now()
local next = redis.call('ZRANGE', retries_key, 0, 0, 'WITHSCORES')[2]
if next and s[7] and tonumber(s[7]) > tonumber(next) then next = s[7] end
return ok(redis.call('XLEN', queue_key), s[5] or s[1], s[2], s[3], s[4], seconds, s[6] or 0, next)

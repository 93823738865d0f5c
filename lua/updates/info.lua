--[[
@summary What getWebhookInfo tells of a bot's queue.
@flag    no-writes
@key     state  {NN}:queue_state:<bot>  HASH
@key     queue  {NN}:queue:<bot>        STREAM
@ok      pending  int
@ok      mask     int?
]]
return ok(redis.call('XLEN', queue_key), redis.call('HGET', state_key, 'mask'))

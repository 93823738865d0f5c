--[[
@summary Makes more of a bot's parked chats due now, after its webhook changed.
@why     The switch script handles only the first of them, because there may be as many chats as queued updates.
@repeatable A due chat stays due.
@include clock
@include stream
@include queue
@include delivery
@flag    allow-oom
@key     state    {NN}:queue_state:<bot>  HASH
@key     retries  {NN}:retries:<bot>      ZSET
@arg     version  text   version of the webhook: a newer version starts its own run
@ok      more     flag   there may be more: call the script again
]]
if redis.call('HGET', state_key, 'hook_set') ~= version then return ok(0) end
local _, ms = now()
-- Chats that a worker has read since are due after its lease, and must not be read twice.
return ok(retry_chats_now(retries_key, ms, ms + LIMITS.webhook_lease_ms) and 1 or 0)

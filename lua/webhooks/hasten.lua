--[[
@summary Makes more of a bot's parked chats due at once, after it got another webhook.
@why     The step that switches hastens only the first of them: there may be as many as updates in a queue.
@repeatable A chat that is due stays due.
@include clock
@include stream
@include queue
@include delivery
@flag    allow-oom
@key     state    {NN}:queue_state:<bot>  HASH
@key     retries  {NN}:retries:<bot>      ZSET
@arg     version  text   of the webhook: another one has been hastened by itself
@ok      more     flag   there may be more: the script is to be called again
]]
if redis.call('HGET', state_key, 'hook_set') ~= version then return ok(0) end
local _, ms = now()
-- What a worker has taken since falls due after its lease, and is not to be taken twice.
return ok(hasten_chats(retries_key, ms, ms + LIMITS.webhook_lease_ms) and 1 or 0)

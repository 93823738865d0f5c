--[[
@summary After a bot's webhook changed, makes more of the bot's parked chats due now.
@why     `webhooks/switch` makes only the first chats due, because there may be as many chats as queued updates.
@repeatable A due chat stays due.
@flag    allow-oom
@arg     version  text   version of the webhook: a newer version starts its own run
@ok      more     flag   there may be more: call the script again
]]
if redis.call('HGET', state_key, 'hook_set') ~= version then return ok(0) end
local _, ms = now()
-- If a worker has read a chat since the change, the chat keeps its due time, which is the end of the worker's lease.
-- Otherwise another worker would read the chat too.
return ok(retry_chats_now(retries_key, ms, ms + LIMITS.webhook_lease_ms) and 1 or 0)

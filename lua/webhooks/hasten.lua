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
-- A worker that has read a chat since the change has set the chat's due time to the end of its lease. The chat keeps
-- this due time, so that no second worker reads the chat.
return ok(retry_chats_now(retries_key, ms, ms + LIMITS.webhook_lease_ms) and 1 or 0)

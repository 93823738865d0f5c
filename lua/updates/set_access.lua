--[[
@summary Copies a bot's write policy from Postgres to its queue state.
         For one chat, also stores whether its user may write.
@why     Messages that are sent after this call are checked against this version or a later one.
@repeatable Each version is written only once.
@flag    allow-oom
@key     state   {NN}:queue_state:<bot>  HASH
@derived chat    {NN}:chat:<bot>.<user>  HASH   the caller passes the prefix up to the last part
@arg     known    int     the incarnation before Postgres was read
@arg     version  int
@arg     policy   text    all, selected or owner
@arg     chat     text    <bot>.<user>, or empty
@arg     may      flag    that user may write under this version
@err     moved    incarnation int
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
-- If Redis lost writes after the caller read the policy, refuses the policy. The lost writes may have contained a later
-- version of it.
if inc ~= tonumber(known) then return refuse('moved', inc) end
local s = redis.call('HMGET', state_key, 'wi', 'wv')
local present = tonumber(s[1]) == inc and tonumber(s[2]) or 0
if present > tonumber(version) then return ok() end
if present < tonumber(version) then redis.call('HSET', state_key, 'wi', inc, 'wv', version, 'wp', policy) end
-- Skips a chat that is not in Redis, because a write would create a chat with only this field.
if chat ~= '' and redis.call('HEXISTS', chat_key(chat), 'pi') == 1 then
  redis.call('HSET', chat_key(chat), 'w', version .. (may and '+' or '-'))
end
return ok()

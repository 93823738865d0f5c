--[[
@summary Copies who may write to a bot beside its queue, and for one of its chats whether its person may.
@why     Whatever is sent once this has run is judged by this version or a later one.
@repeatable A version is written once.
@include partition
@flag    allow-oom
@key     meta    {NN}:meta               HASH
@key     state   {NN}:queue_state:<bot>  HASH
@derived chat    {NN}:chat:<bot>.<user>  HASH   the caller passes the prefix up to the last part
@arg     run      text
@arg     known    int     the incarnation that was there before Postgres was read
@arg     version  int
@arg     policy   text    all, selected or owner
@arg     chat     text    <bot>.<user>, or nothing
@arg     may      flag    whether that user may write under this version
@err     stale_run
@err     moved    incarnation int
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
-- A Redis that lost its tail may have lost a later version too: what was read before that may be the past.
if inc ~= tonumber(known) then return refuse('moved', inc) end
local s = redis.call('HMGET', state_key, 'wi', 'wv')
local present = tonumber(s[1]) == inc and tonumber(s[2]) or 0
if present > tonumber(version) then return ok() end
if present < tonumber(version) then redis.call('HSET', state_key, 'wi', inc, 'wv', version, 'wp', policy) end
-- A chat that is not here takes nothing, so that none is made of this alone.
if chat ~= '' and redis.call('HEXISTS', chat_key(chat), 'pi') == 1 then
  redis.call('HSET', chat_key(chat), 'w', version .. (may and '+' or '-'))
end
return ok()

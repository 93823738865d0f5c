--[[
@summary Returns the first bytes of the newest message in each chat, for sorting lists of chats.
         All chats are in one partition.
@flag    no-writes
@derived chat     {NN}:chat:<chat>               HASH
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@args    chats    text
@ok      heads    raw     in the order of the chats: the first bytes of the record, '' for a chat without messages, null
                          where only Postgres has it
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local heads = {}
for i, chat in ipairs(chats) do
  local newest = redis.call('HGET', chat_key(chat), 's')
  local head = false
  if newest == '0' then
    head = ''
  elseif newest then
    head = redis.call('GETRANGE', message_key(chat .. ':' .. newest), 0, LIMITS.message_head_bytes_max - 1)
    if head == '' then head = false end
  end
  heads[i] = head
end
return ok(heads)

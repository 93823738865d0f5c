--[[
@summary Returns the id and the first bytes of the newest message in each chat, for sorting lists of chats.
         All chats are in one partition.
@flag    no-writes
@derived chat     {NN}:chat:<chat>               HASH
@derived message  {NN}:msg:<chat>:<message_id>   STRING
@args    chats    text
@ok      rows     raw     in the order of the chats: the id and the first bytes of the record. The bytes are '' for a
                          chat without messages, and null where only Postgres has the record. The row is null where
                          only Postgres has the chat
]]
if not trusted_incarnation(meta_key, run) then return refuse('stale_run') end
local rows = {}
for i, chat in ipairs(chats) do
  local newest = redis.call('HGET', chat_key(chat), 's')
  local head = false
  if newest == '0' then
    head = ''
  elseif newest then
    head = redis.call('GETRANGE', message_key(chat .. ':' .. newest), 0, LIMITS.message_head_bytes_max - 1)
    if head == '' then head = false end
  end
  rows[i] = newest and {newest, head}
end
return ok(rows)

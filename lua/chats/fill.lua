--[[
@summary Stores a chat that was loaded from Postgres because Redis lacked it.
@why     A fill requires its ticket and an absent key, so that the message sequence never decreases.
@repeatable A ticket can be used only once.
@why     If only the copied profile was missing, the script keeps the message sequence, because Redis may be ahead of
         Postgres.
@flag    allow-oom
@key     chat    {NN}:chat:<chat>          HASH
@key     ticket  {NN}:chat:<chat>:ticket   STRING
@arg     token    text
@arg     sequence bytes   msgpack array of text: last message id in Postgres, version of the last change, incarnation of
                          the sequence, id of the pinned message or 0, permissions that differ from the defaults, ids of
                          the messages whose reply keyboards are shown
@arg     profile  bytes
@arg     profile_version int
@arg     kind     text    direct, blocked, group, channel, private, person or closed
@arg     bots     text    ids of a group's bots, comma-separated
@arg     ttl_ms   int
@ok      filled   flag
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
if not has_ticket(ticket_key, token, inc) then return ok(0) end
local copied_under = redis.call('HGET', chat_key, 'pi')
if copied_under and tonumber(copied_under) == inc then return ok(0) end
redis.call('DEL', ticket_key)
local seq, version, seq_inc, pin, permissions, keyboards = unpack(cmsgpack.unpack(sequence))
if redis.call('EXISTS', chat_key) == 0 then
  redis.call('HSET', chat_key, 's', seq, 'i', seq_inc, 'v', version, 'c', version, 'pin', pin)
  if keyboards ~= '' then redis.call('HSET', chat_key, 'kb', keyboards) end
  redis.call('PEXPIRE', chat_key, ttl_ms)
  -- Creates the change log of a new chat immediately, because the chat's members usually read the log next.
  if tonumber(seq) == 0 then keep_log(changes_key, LIMITS.changes_log_new_ttl_ms) end
end
redis.call('HSET', chat_key, 'p', profile, 'pv', profile_version, 't', kind, 'b', bots, 'd', permissions, 'pi', inc)
return ok(1)

--[[
@summary Creates a poll.
         The caller sends the message of the poll afterwards, because the message contains the id of the poll.
@repeatable A second run finds the token of the first run.
@key     poll     {NN}:poll:<poll>  HASH
@key     due      {NN}:polls_due  ZSET     poll -> ms
@arg     token    text
@arg     poll     text
@arg     place    text    partition and number of the poll, separated by a colon
@arg     record   bytes   the poll as Postgres stores it
@arg     closes_ms int    time at which the poll closes; 0 for never
@args    fields   bytes   names and values of the record in Redis
@err     taken
]]
local why = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
if redis.call('EXISTS', poll_key) == 1 then
  if redis.call('HGET', poll_key, 'r') == token then return ok() end
  return refuse('taken')
end
if why then return refuse('journal_full') end
local version = next_version(meta_key)
redis.call('HSET', poll_key, 'v', version, 'u', 0, 'r', token, unpack(fields))
journal_image({meta = meta_key, journal = journal_key}, version, 'poll:' .. place, record, poll_key)
if closes_ms ~= '0' then redis.call('ZADD', due_key, closes_ms, poll) end
return ok()

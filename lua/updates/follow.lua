--[[
@summary Reads the updates that a stream without a consumer name has not sent yet.
         For a stream with a consumer name, only checks that no other poll has replaced the stream.
@why     A stream that another poll has replaced must read nothing.
@flag    no-writes
@key     state    {NN}:queue_state:<bot>  HASH
@key     queue    {NN}:queue:<bot>        STREAM
@key     consumption {NN}:consumption:<bot> HASH
@arg     name     text    the consumer, or empty
@arg     poll     text    random name of this stream
@arg     after    int     the last update that the stream sent
@arg     limit    int     0 reads no update
@ok      rows     raw     stream entries, fewer than `limit` where they are large
@ok      more     flag    there may be more updates
@ok      oldest   int     the oldest pending update, 0 for none
@ok      latest   int     the latest update that was created
@err     terminated
@err     terminated_by_webhook
]]
local s = redis.call('HMGET', state_key, 'seq', 'poll', 'hook', 'leased')
if s[3] then return refuse('terminated_by_webhook') end
if name ~= '' then
  local present = redis.call('HGET', consumption_key, 'p:' .. name)
  if shared_until(s[2]) == 0 or (present and present ~= poll) then return refuse('terminated') end
  return ok({}, 0, 0, tonumber(s[1]))
end
if s[2] ~= poll then return refuse('terminated') end
-- Returns no updates yet, because a webhook was just deleted. The receiver of the deleted webhook may still acknowledge
-- requests in flight.
if s[4] and tonumber(s[4]) > select(2, now()) then return ok({}, 0, 0, tonumber(s[1])) end
local oldest = redis.call('XRANGE', queue_key, '-', '+', 'COUNT', 1)[1]
local rows, more = {}, true
if tonumber(limit) > 0 then
  local _
  rows, _, more = read_within(queue_key, ('(%.0f-0'):format(after), '+', tonumber(limit))
end
return ok(rows, more and 1 or 0, oldest and tonumber(oldest[1]:match('%d+')) or 0, tonumber(s[1]))

--[[
@summary Reads the progress of a replay, and the pending updates that the replay may deliver next.
@flag    no-writes
@key     state  {NN}:queue_state:<bot>  HASH
@key     queue  {NN}:queue:<bot>        STREAM
@arg     bot     text
@arg     from    text   id after which to read updates
@arg     last    text   id of the last update to read, 0 to read none
@args    slots   text   slots of the queues to read
@ok      newest  int?   id of the newest update of the bot
@ok      replay  int?   id of the replay whose queue is open
@ok      at      int?   id of the last update that was fed or skipped
@ok      fed     int?   number of updates that were fed
@ok      pending int    updates of the replay that are pending
@ok      dead    int?   updates of the replay that became dead letters
@ok      why     text?  error of the last failed delivery
@ok      late    flag   the target has a live update that is late, or its receiver is down
@ok      found   raw    for each slot in order: the entries, and 1 if there may be more
]]
local state, queue = route_key(state_key, bot, LIMITS.replay_slot), route_key(queue_key, bot, LIMITS.replay_slot)
local s = redis.call('HMGET', state, 'replay', 'at', 'fed', 'dead', 'err', 'to')
local found = {}
for i, slot in ipairs(last == '0' and {} or slots) do
  local _, of = replay_target(state_key, queue_key, bot, slot)
  local entries, _, more = read_within(of, '(' .. from .. '-0', last .. '-0', LIMITS.replay_batch_max)
  found[i] = {entries, more and 1 or 0}
end
local late = 0
if s[6] then
  local _, ms = now()
  local target, live = replay_target(state_key, queue_key, bot, s[6])
  local t = redis.call('HMGET', target, 'cur', 'hold')
  -- Every update up to the cursor `cur` is either delivered, or parked until its chat is retried.
  local oldest = redis.call('XRANGE', live, '(' .. (t[1] or '0') .. '-0', '+', 'COUNT', 1)[1]
  if tonumber(t[2] or 0) > ms or oldest and ms - tonumber(oldest[2][4]) > LIMITS.replay_late_ms then late = 1 end
end
return ok(redis.call('HGET', state_key, 'seq'), s[1], s[2], s[3], redis.call('XLEN', queue), s[4], s[5], late, found)

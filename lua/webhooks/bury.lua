--[[
@summary Removes undeliverable updates from a bot's queue and journals them as dead letters.
@why     An update must leave the queue in the same step that journals it. Only the holder of the lease may remove it.
@repeatable A dead letter is no longer in the queue.
@flag    allow-oom
@arg     bot     text
@arg     fence   text
@arg     reason  text
@args    ids     text   ids of the updates to remove
@ok      buried  int
@err     fenced
]]
local why, inc = closed(meta_key, journal_key, run, LIMITS.journal_reserve)
if why then return refuse(why) end
if redis.call('HGET', state_key, 'fence') ~= fence or incarnation_of(fence) ~= inc then return refuse('fenced') end
local _, ms = now()
local q = read_queue(state_key)
local at = {meta = meta_key, journal = journal_key, state = state_key, queue = queue_key, parked = parked_key,
  retries = retries_key, attempts = attempts_key, bot = bot}
local buried = 0
for _, id in ipairs(ids) do
  local entry = entry_of(at, id)
  if entry then
    local chat = entry[2][6]
    dead_letter(q, at, entry, reason, ms)
    if unpark(at, chat, id) then settle_chat(at, chat, ms) end
    buried = buried + 1
  end
end
if buried > 0 then redis.call('HSET', state_key, 'bytes', q.bytes) end
return ok(buried)

--[[
@summary Stores, changes or retracts a person's vote in a poll.
@why     The script changes the person's vote, the counts and the journal in one step, because two nodes may serve the
         same person at once.
@key     user_ticket  {NN}:voted:<poll>:<user>:ticket  STRING
@key     due          {NN}:polls_due                   ZSET     poll -> ms
@arg     token     text
@arg     vote      bytes   msgpack array of text: poll, place, user, what (vote, or erase for a deleted user), options
                           separated by spaces in ascending order
@arg     known     text    the person's vote in Postgres; - if not read yet
@arg     from      bytes   the person's profile; empty if the bot gets no updates
@ok      results   bytes   msgpack array: voters, 1 if the poll is closed, votes for each option
@ok      forward   flag    the outbox has new entries
@err     user_missing  ticket text
@err     vote_final
]]
local poll, place, user, what, options = unpack(cmsgpack.unpack(vote))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
local p = read_post(poll_key)
if not p then return refuse('poll_missing', leave_ticket(poll_ticket_key, token, inc)) end
if p.deleted then return refuse('poll_gone') end
-- Returns the current results. Another call by this person may have changed the vote since the first call with this
-- request id.
if remembered(request_key) then return ok(poll_results(p), 0) end
local seconds, ms = now()
local erase = what == 'erase'
if not erase and is_closed(p, seconds) then return refuse('poll_closed') end
local own, generation = find_actor(p, voted_prefix, user)
if not own then
  if known == '-' or not has_ticket(user_ticket_key, token, inc) then
    return refuse('user_missing', leave_ticket(user_ticket_key, token, inc))
  end
  own = known
end
if own == options then
  remember(request_key, '1')
  return ok(poll_results(p), 0)
end
if not erase and own ~= '' and get_field(p, 'q') == '1' then return refuse('vote_final') end
if why then return refuse('journal_full') end
if from ~= '' and outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

advance_generation(p, poll_key, voted_prefix, meta_key, ms)
local cast, counted = unpack(next_versions(meta_key, 2))
local at = {meta = meta_key, journal = journal_key}
journal_image(at, cast, ('vote:%s:%s'):format(place, user), options ~= '' and cmsgpack.pack({options, seconds}) or '',
  voted_key(p.now))
keep_actor(p, voted_prefix, user, own, generation, options, cast)
redis.call('DEL', user_ticket_key, poll_ticket_key)
local function count(chosen, change)
  for option in chosen:gmatch('%d+') do
    set_field(p, 'n:' .. option, tostring(tonumber(get_field(p, 'n:' .. option) or 0) + change))
  end
end
count(own, -1)
count(options, 1)
set_field(p, 'u', tostring(p.users + (options ~= '' and 1 or 0) - (own ~= '' and 1 or 0)))
set_field(p, 'v', counted)
write_post(poll_key, p)
local results = poll_results(p)
journal_image(at, counted, 'results:' .. place, results, poll_key)
remember(request_key, '1')
if from == '' then return ok(results, 0) end
redis.call('ZADD', due_key, 'LT', ('%.0f'):format(ms + LIMITS.counts_interval_ms_min), poll)
if get_field(p, 'o') ~= '1' then return ok(results, 0) end
post_poll_update(meta_key, outbox_key, p, counted, ms, 'poll_answer', poll, from, cmsgpack.pack({options}))
return ok(results, 1)

--[[
@summary Reads the results of a poll and a person's vote.
@repeatable A second read finds the same record or the same ticket.
@flag    allow-oom
@arg     token     text
@arg     who       text    id of the person; 0 for a bot
@arg     ttl_ms    int     renews the time to live of a poll that expires
@ok      results   bytes   msgpack array: voters, 1 if the poll is closed, votes for each option
@ok      own       text?   the person's options, separated by spaces; null when only Postgres knows
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local p = read_post(poll_key)
if not p then return refuse('poll_missing', leave_ticket(poll_ticket_key, token, inc)) end
if p.deleted then return refuse('poll_gone') end
redis.call('PEXPIRE', poll_key, ttl_ms, 'XX')
if who == '0' then return ok(poll_results(p), '') end
return ok(poll_results(p), find_actor(p, voted_prefix, who) or false)

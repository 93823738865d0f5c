--[[
@summary Reads and writes a poll: its definition, the votes for each option, and when it closes.
@key     poll         {NN}:poll:<poll>                HASH
@key     poll_ticket  {NN}:poll:<poll>:ticket         STRING
@derived poll         {NN}:poll:<poll>                HASH
@derived voted        {NN}:voted:<poll>:<generation>  HASH
@err     poll_missing  ticket text
@err     poll_gone
@err     poll_closed
]]
-- The scripts read and write a poll with the functions for posts, because recent voters are kept like the recent
-- actors of a post. Fields besides v, u, x, g, gp and gt of a post:
--   c      chat to which the poll was sent
--   b      bot that sent the poll
--   d      definition: a msgpack map that scripts only copy
--   k      number of options
--   e      Unix time (s) at which the poll closes; 0 for never
--   q      1 if votes are final
--   o      1 if the bot gets each answer
--   z      set once the poll is stopped
--   n:<i>  number of votes for option i
--   r      token of the call that created the poll
local function is_closed(p, seconds)
  local ends = tonumber(get_field(p, 'e'))
  return get_field(p, 'z') ~= nil or (ends > 0 and seconds >= ends)
end

local function poll_results(p)
  local results = {tonumber(get_field(p, 'u')), get_field(p, 'z') and 1 or 0}
  for i = 0, tonumber(get_field(p, 'k')) - 1 do results[i + 3] = tonumber(get_field(p, 'n:' .. i) or 0) end
  return cmsgpack.pack(results)
end

-- Adds an update about a poll. The record in this update contains only the date.
local function post_poll_update(meta, outbox, p, version, ms, kind, poll, from, extra)
  local record = tombstone({[3] = math.floor(ms / 1000), [5] = 0}, version)
  return post_update(meta, outbox, version, ms, get_field(p, 'b'), '', kind, p.chat, poll, record, from, '', '', extra)
end

-- Adds an update with the current state of a poll. '\128' is an empty map in place of a sender.
local function tell_poll(meta, outbox, p, version, ms, poll)
  return post_poll_update(meta, outbox, p, version, ms, 'poll', poll, '\128', '\146' .. get_field(p, 'd') .. poll_results(p))
end

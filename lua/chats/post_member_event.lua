--[[
@summary Sends updates about a changed membership or a join request to the chat's bots.
@why     The script sets the event's mark, the updates and the message in one step, so that a repeated call adds
         nothing.
@key     request  {NN}:req:<id>             STRING
@arg     chat    text
@arg     event   text    id of the event
@arg     bots    bytes   msgpack array of text: the bot whose membership changed, or empty; and the bots that may see the
                         link, or that receive a join request
@arg     record  bytes   a record that describes the change of the member, or empty
@arg     linked  bytes   the same record with the invite link that was used, or empty
@arg     service bytes   the service message without version and date, or empty
@arg     from    bytes   profile of the user who made the change
@ok      forward  flag   the outbox has new entries
]]
local own, inviters = unpack(cmsgpack.unpack(bots))
local why, inc = closed(meta_key, journal_key, run)
if why == 'stale_run' then return refuse('stale_run') end
if redis.call('EXISTS', request_key) == 1 then return ok(0) end
local c = read_chat(chat_key, inc)
if not c then return refuse('chat_missing', leave_ticket(ticket_key, token, inc)) end
if why then return refuse('journal_full') end
if outbox_full(meta_key, outbox_key) then return refuse('outbox_full') end

local seconds, ms = now()
local forward = false
if record ~= '' and own ~= '' then
  forward = post_update(meta_key, outbox_key, next_version(meta_key), ms, own, '', 'my_chat_member', chat, event, record, from,
    c.profile, '', '')
end
if service ~= '' then
  local at = {meta = meta_key, journal = journal_key, changes = changes_key, channel = channel_key, message_prefix = message_prefix}
  local id, message, version = append_message(at, c, chat, seconds, service)
  touch_chat(chat_key, c, version)
  local kind = is_channel(c) and 'channel_post' or 'message'
  local bots = receiving_bots(c, ('%.0f'):format(read_header(message)[5]))
  forward = post_update(meta_key, outbox_key, version, ms, bots, '', kind, chat, id, message, from, c.profile, '', '') or forward
end
local function tell(receivers, kind, shown)
  forward = post_update(meta_key, outbox_key, next_version(meta_key), ms, receivers, own, kind, chat, event, shown, from, c.profile, '',
    '') or forward
end
if record == '' and linked ~= '' then
  tell(inviters, 'chat_join_request', linked)
elseif linked == '' then
  if record ~= '' then tell(c.bots, 'chat_member', record) end
else
  local seeing, others = {}, {}
  for bot in c.bots:gmatch('%d+') do
    local list = (',' .. inviters .. ','):find(',' .. bot .. ',', 1, true) and seeing or others
    list[#list + 1] = bot
  end
  tell(table.concat(seeing, ','), 'chat_member', linked)
  tell(table.concat(others, ','), 'chat_member', record)
end
redis.call('SET', request_key, 1, 'PX', LIMITS.member_event_mark_ms)
return ok(forward and 1 or 0)

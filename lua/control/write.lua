--[[
@summary Writes the copy of a control record: a fill with its ticket, or a refresh by version.
@why     A fill must not undo a refresh that came between its read of Postgres and now.
@include partition
@include control
@key     meta    {NN}:meta              HASH
@key     record  {NN}:<subject>:<id>    STRING
@key     ticket  {NN}:<subject>:<id>:ticket STRING
@key     channel {NN}:on_user:<id>      CHANNEL
@arg     token    text    the fill's ticket; nothing for a refresh
@arg     version  int
@arg     fields   bytes   the packed array behind version and incarnation
@arg     count    int     of all elements
@arg     ttl_ms   int
@ok      written  flag
]]
local inc = incarnation_of(redis.call('HGET', meta_key, 'ver') or 0)
local present, present_version = read_control(record_key, inc)
if token ~= '' then
  if redis.call('GET', ticket_key) ~= token or present then return ok(0) end
elseif present and present_version >= tonumber(version) then
  redis.call('DEL', ticket_key)
  return ok(0)
end
redis.call('SET', record_key, string.char(144 + tonumber(count)) .. cmsgpack.pack(tonumber(version), inc) .. fields, 'PX', ttl_ms)
redis.call('DEL', ticket_key)
if token == '' then redis.call('SPUBLISH', channel_key, '') end
return ok(1)

--[[
@summary Writes the copy of a control record. A fill from Postgres needs a ticket. A refresh needs a newer version.
@why     A fill must not undo a refresh that happened after the fill read Postgres. A refresh must not undo a later one.
@repeatable Each version is written only once, and a ticket can be used only once.
@flag    allow-oom
@key     record  {NN}:<subject>:<id>    STRING
@key     ticket  {NN}:<subject>:<id>:ticket STRING
@key     channel {NN}:on_user:<id>      CHANNEL
@arg     token    text    from `control/read`, to fill an absent record; empty if the record was present
@arg     refresh  flag    replace an older record
@arg     version  int
@arg     fields   bytes   the packed array after version and incarnation
@arg     count    int     number of elements in the array, version and incarnation included
@arg     ttl_ms   int
@ok      written  flag
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local present, present_version = read_control(record_key, inc)
local writable
if present then
  writable = refresh and present_version < tonumber(version)
else
  writable = has_ticket(ticket_key, token, inc)
end
-- Removes the ticket, so that a fill that read Postgres before this write is refused. A later fill reads the committed
-- value.
if writable or refresh then redis.call('DEL', ticket_key) end
if writable then
  redis.call('SET', record_key, string.char(144 + tonumber(count)) .. cmsgpack.pack(tonumber(version), inc) .. fields, 'PX',
    copy_ttl(version, ttl_ms))
end
if refresh then redis.call('SPUBLISH', channel_key, '') end
return ok(writable and 1 or 0)

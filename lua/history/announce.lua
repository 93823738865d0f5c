--[[
@summary Announces flushes to fronts. Refuses if a Postgres server that committed a flush was replaced.
@why     The commits of a replaced server are lost. The script writes nothing, so Redis does not wait for its disk.
@repeatable A repeated announcement does no harm.
@flag    allow-oom
@key     history  {NN}:postgres  HASH
@key     flushed  {NN}:on_flushed  CHANNEL
@arg     hint     text
@args    servers  text   database, timeline and start time of each server that committed
@err     replaced
]]
for _, running in ipairs(servers) do
  if redis.call('HEXISTS', history_key, 'gone:' .. running) == 1 then return refuse('replaced') end
end
redis.call('SPUBLISH', flushed_key, hint)
return ok()

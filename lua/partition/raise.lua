--[[
@summary Raises a partition's incarnation, so that nodes no longer use the copies that they read from Postgres.
@why     Postgres lost commits, so its records no longer match their copies in Redis.
@arg     incarnation  int        incarnation registered in Postgres
@err     behind       highest int
@repeatable Each incarnation is raised only once.
@flag    allow-oom
]]
local version = tonumber(redis.call('HGET', meta_key, 'ver') or 0)
local raised = tonumber(incarnation)
if incarnation_of(version) > raised then return refuse('behind', ('%.0f'):format(version)) end
if incarnation_of(version) < raised then
  redis.call('HSET', meta_key, 'ver', ('%.0f'):format(raised * LIMITS.versions_per_incarnation))
end
return ok()

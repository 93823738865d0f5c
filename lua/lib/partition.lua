--[[
@summary Entering a partition to change it: fence, back-pressure, versions and the journal.
]]
-- Raised whenever Redis may have lost its last changes.
local function incarnation_of(version)
  return math.floor(version / LIMITS.versions_per_incarnation)
end

-- The name of what forbids a change now, or nil; and the present incarnation. A run id that differs means that this
-- Redis restarted or is another one: versions must not be handed out before the incarnation was raised. Steps that delete or
-- deliver pass `reserve`: they go on up to so many times the bound.
local function closed(meta, journal, run, reserve)
  local m = redis.call('HMGET', meta, 'run', 'hw', 'ver', 'hwb', 'jw', 'jt')
  if m[1] ~= run then return 'stale_run' end
  local times, bytes = reserve or 1, (m[5] or 0) - (m[6] or 0)
  if redis.call('XLEN', journal) >= m[2] * times or bytes >= (m[4] or math.huge) * times then
    return 'journal_full', incarnation_of(m[3])
  end
  return nil, incarnation_of(m[3])
end

-- A number that grows with every change of the partition, for ever: as text, since Redis and Lua spell a number anew wherever
-- it becomes one. Arguments that are text cost a third of a microsecond less for the same reason.
local function next_version(meta)
  return ('%.0f'):format(redis.call('HINCRBY', meta, 'ver', '1'))
end

-- The same for several changes at once, in order: a list.
local function next_versions(meta, count)
  local last, versions = redis.call('HINCRBY', meta, 'ver', count), {}
  for i = 1, count do versions[i] = ('%.0f'):format(last - count + i) end
  return versions
end

-- The incarnation under which copies may be trusted, or nil for a Redis that must first be recovered.
local function trusted_incarnation(meta, run)
  local m = redis.call('HMGET', meta, 'run', 'ver')
  if m[1] ~= run then return nil end
  return incarnation_of(m[2])
end

-- Tells Postgres of the whole new image of an entity; an empty image is a tombstone. `state`, if given, names the HASH
-- that may leave Redis once this version, which its field v then has, is in Postgres. The second part of an entry's id is how many
-- bytes were ever journaled before it: a trim finds there what is left, so that no count can drift.
local function journal_image(at, version, entity, image, state)
  local size = #entity + #image + #(state or '')
  local id = ('%s-%.0f'):format(version, redis.call('HINCRBY', at.meta, 'jw', size) - size)
  if state then
    redis.call('XADD', at.journal, id, 'k', entity, 'i', image, 's', state)
  else
    redis.call('XADD', at.journal, id, 'k', entity, 'i', image)
  end
end

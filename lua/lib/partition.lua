--[[
@summary Checks the preconditions of a change in a partition, allocates versions, and writes the journal.
@key     meta     {NN}:meta     HASH
@key     journal  {NN}:journal  STREAM
@arg     run      text          run id of the connected Redis; added by the runner
@err     stale_run
@err     journal_full
@after   save_counters
]]
-- Used only in a combined run: the partition's last version, and the number of bytes that were ever journaled. All
-- calls of the run read and change these two counters.
local counters = nil

-- Allocates a version in a combined run.
local function draw_version()
  counters.version, counters.changed = ('%.0f'):format(counters.version + 1), true
  return counters.version
end

-- Allocates several versions in a combined run.
local function draw_versions(count)
  local versions = {}
  for i = 1, count do versions[i] = draw_version() end
  return versions
end

-- Adds to the byte count of the journal in a combined run. Returns the count before the addition.
local function count_bytes(size)
  local before = counters.journaled
  counters.journaled, counters.changed = ('%.0f'):format(before + size), true
  return before
end

-- Writes the partition's last version and journal bytes to Redis, after all calls of a combined run.
local function save_counters()
  if not counters or not counters.changed then return end
  redis.call('HSET', counters.meta, 'ver', counters.version, 'jw', counters.journaled)
end

-- Returns the incarnation that a version contains. The incarnation is raised whenever Redis may have lost its latest
-- changes.
local function incarnation_of(version)
  return math.floor(version / LIMITS.versions_per_incarnation)
end

-- Returns the error that forbids a change now, or nil. The second result is the current incarnation. If there is no
-- error, the next results are the last version and the number of bytes ever journaled, both as text. If the run id
-- differs, Redis restarted or was replaced. Scripts then issue no versions until the incarnation is raised. Scripts
-- that delete or deliver pass `reserve`, a factor for the journal limit. A combined run skips this check for a call if
-- an earlier call passed it with the same or a lower limit.
local function closed(meta, journal, run, reserve)
  local times = reserve or 1
  if combined and counters and times >= counters.times then
    return nil, incarnation_of(counters.version), counters.version, counters.journaled
  end
  local m = redis.call('HMGET', meta, 'run', 'hw', 'ver', 'hwb', 'jw', 'jt')
  if m[1] ~= run then return 'stale_run' end
  local bytes = (m[5] or 0) - (m[6] or 0)
  if redis.call('XLEN', journal) >= m[2] * times or bytes >= (m[4] or math.huge) * times then
    return 'journal_full', incarnation_of(m[3])
  end
  if combined then counters = counters or {meta = meta, version = m[3], journaled = m[5] or '0'} end
  if combined then counters.times = times end
  if combined then return nil, incarnation_of(m[3]), counters.version, counters.journaled end
  return nil, incarnation_of(m[3]), m[3], m[5] or '0'
end

-- Allocates the version of a change. Versions only grow within a partition. The version is text, because Redis and Lua
-- would convert a number at each use. A conversion takes a third of a microsecond.
local function next_version(meta)
  if combined then return draw_version() end
  return ('%.0f'):format(redis.call('HINCRBY', meta, 'ver', '1'))
end

-- Allocates versions for several changes in one step, in ascending order.
local function next_versions(meta, count)
  if combined then return draw_versions(count) end
  local last, versions = redis.call('HINCRBY', meta, 'ver', count), {}
  for i = 1, count do versions[i] = ('%.0f'):format(last - count + i) end
  return versions
end

-- The incarnations that a combined run has read, keyed by the key of their partition.
local run_incarnations = {}

-- Returns the partition's incarnation, under which copies are valid. Returns nil if the partition must be recovered
-- first.
local function trusted_incarnation(meta, run)
  if combined and run_incarnations[meta] then return run_incarnations[meta] end
  local m = redis.call('HMGET', meta, 'run', 'ver')
  if m[1] ~= run then return nil end
  if combined then run_incarnations[meta] = incarnation_of(m[2]) end
  return incarnation_of(m[2])
end

-- Writes the complete new image of an entity to the journal, for Postgres. An empty image is a tombstone. `state`, if
-- given, names a HASH whose field v holds the version. When the version has been flushed, Redis may drop this HASH. The
-- second part of an entry's id is the number of bytes journaled before the entry, so a trim can compute the remaining
-- size exactly.
local function journal_image(at, version, entity, image, state)
  local size, before = #entity + #image + #(state or ''), nil
  if combined then before = count_bytes(size) end
  if not combined then before = redis.call('HINCRBY', at.meta, 'jw', size) - size end
  local id = ('%s-%.0f'):format(version, before)
  if state then
    redis.call('XADD', at.journal, id, 'k', entity, 'i', image, 's', state)
  else
    redis.call('XADD', at.journal, id, 'k', entity, 'i', image)
  end
end

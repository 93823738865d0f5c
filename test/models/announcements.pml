/*
 * Announcements of flushes, and the marks that show whether Postgres lost commits (src/journal/pipeline.ts,
 * src/journal/history.ts, lua/history).
 *
 * One partition and two flushers. A standby follows the primary server with a delay. Either the standby is promoted
 * while the former primary still accepts commits, or Redis crashes and loses its latest writes. A version is a bit, and
 * no version is used twice. Incarnations have a model of their own.
 *
 * Invariants, in the words of decisions 0031 and 0055:
 * - "answered only when its changes are in Postgres": the server of the announcement has all changes that it confirms.
 * - "A flush also increments and records a mark, before entries leave the journal": if the current server lacks a
 *   change that left the journal, its mark is lower than the mark in Redis.
 * - A loss of one of the two servers alone loses no confirmed change.
 */
#ifndef FLUSHERS
#define FLUSHERS 2
#endif
#ifndef CHANGES
#define CHANGES 2
#endif
#ifndef DEATHS
#define DEATHS 1 /* of flushers */
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define NOBODY 2

/* `store`: the changes that Redis has. `journal`: those of them that no flusher has settled. `gone`: the servers, as
   bits, that another server has replaced. */
typedef Keys { byte store; byte journal; byte mark; byte gone };
Keys redis;
Keys disk; /* state that a crash leaves */
byte run_id = 0; /* of the Redis that runs now; also the incarnation in Postgres */

/* Postgres: the rows and the mark of each server, and the server at the address. */
byte rows[2];
byte mark[2];
byte primary = 0;
byte admitted = 0; /* the server that nodes accept */

byte issued = 0; /* all changes so far, as bits */
byte changes = 0;
byte of_run[2]; /* the changes of each run */
byte confirmed = 0;
byte faults = 0;
byte deaths = 0;
bool crashed = false;
bool promoted = false;

#define LACKS(some, all) (((all) & (255 - (some))) != 0)
#define BIT(server) (1 << (server))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
/* All changes that are not newer than the newest one of the set. */
#define UP_TO(set) ((set) >= 4 -> 7 : ((set) >= 2 -> 3 : (set)))

inline copy_state(to, from) {
  to.store = from.store; to.journal = from.journal; to.mark = from.mark; to.gone = from.gone
}

/* Compares the marks before a server is used. A server that lost commits gets them again from the copies in Redis. */
inline admit() {
  if
  :: admitted != primary ->
    if
    :: mark[primary] < redis.mark ->
      rows[primary] = rows[primary] | redis.store; mark[primary] = redis.mark
    :: else
    fi;
    redis.gone = redis.gone | BIT(admitted); admitted = primary
  :: else
  fi
}

/* Drops all batches, which are then read again. */
inline drop() {
  kept = 0; kept_servers = 0; kept_mark[0] = 0; kept_mark[1] = 0; batch = 0; server = NOBODY; last = 0
}

/* The newest mark of each server must be recorded. Only the mark of a server that was not replaced counts. */
inline note() {
#ifdef SETTLES_WITHOUT_MARK
  skip
#else
  if
  :: (redis.gone & 1) == 0 -> redis.mark = MAX(redis.mark, kept_mark[0])
  :: else
  fi;
  if
  :: (redis.gone & 2) == 0 -> redis.mark = MAX(redis.mark, kept_mark[1])
  :: else
  fi
#endif
}

inline check_settled() {
  /* Redis has all changes that are not in the journal, unless it crashed. */
  assert(crashed || !LACKS(rows[primary], redis.store & (255 - redis.journal)) || mark[primary] < redis.mark)
}

/* `last`: the changes that are read so far. `kept`: the announced changes that are not settled, by the servers that
   committed them. */
/* `refused`: the connection to a replaced server is closed. */
proctype flusher() {
  bool refused = false;
  byte kept, kept_servers, batch, server = NOBODY, last, known, kept_mark[2];
end:
  do
  :: /* Reads a batch. It continues after the changes that it read before. */
    atomic { batch == 0 && LACKS(last, redis.journal) ->
      known = run_id; batch = redis.journal & (255 - last); last = last | redis.journal }
  :: /* Commits the batch. An open connection may still lead to the former primary. */
    atomic { batch != 0 && server == NOBODY ->
      if
      :: admit(); server = primary
      :: !refused -> server = 0
      fi;
#ifdef ANNOUNCES_BEFORE_COMMIT
      confirmed = confirmed | (UP_TO(batch) & of_run[known]);
      assert(!LACKS(rows[server], UP_TO(batch) & of_run[known]));
#endif
      if
      :: known == run_id -> rows[server] = rows[server] | batch; mark[server]++;
        kept_mark[server] = mark[server]
      :: else -> drop() /* Postgres refuses a batch of an earlier incarnation. */
      fi
    }
  :: /* Announces the batch, which also confirms all earlier changes. */
    atomic { server != NOBODY ->
      if
#ifdef ANNOUNCES_OF_REPLACED_SERVER
      :: false -> skip
#else
#ifdef CHECKS_ONLY_THE_NEWEST_SERVER
      :: (redis.gone & BIT(server)) != 0 -> refused = true; drop()
#else
      :: (redis.gone & (kept_servers | BIT(server))) != 0 -> refused = true; drop()
#endif
#endif
      :: else ->
        confirmed = confirmed | (UP_TO(batch) & of_run[known]);
        assert(crashed || !LACKS(rows[admitted], UP_TO(batch) & of_run[known]));
        assert(promoted || !LACKS(rows[0], UP_TO(batch) & of_run[known]));
        kept = kept | batch; kept_servers = kept_servers | BIT(server); batch = 0; server = NOBODY
      fi
    }
  :: /* Settles all announced batches: first records the marks, then removes the entries from the journal. */
    atomic { kept != 0 && batch == 0 ->
#ifdef TRIMS_BEFORE_MARK
      redis.journal = redis.journal & (255 - kept); check_settled()
#else
      note()
#endif
    };
    atomic {
      if
#ifndef SETTLES_OF_REPLACED_SERVER
      :: (redis.gone & kept_servers) != 0 -> refused = true; drop()
#endif
      :: else ->
#ifdef TRIMS_BEFORE_MARK
        note();
#else
        redis.journal = redis.journal & (255 - kept); check_settled();
#endif
        kept = 0; kept_servers = 0; kept_mark[0] = 0; kept_mark[1] = 0
      fi
    }
  :: /* Dies, and starts again. */ atomic { last != 0 && deaths < DEATHS -> deaths++; refused = false; drop() }
  od
}

proctype environment() {
end:
  do
  :: atomic { changes < CHANGES ->
      issued = issued | (1 << changes); redis.store = redis.store | (1 << changes);
      redis.journal = redis.journal | (1 << changes); of_run[run_id] = of_run[run_id] | (1 << changes); changes++ }
  :: atomic { !promoted && (rows[1] != rows[0] || mark[1] != mark[0]) -> rows[1] = rows[0]; mark[1] = mark[0] }
  :: atomic { faults < FAULTS && !promoted -> promoted = true; faults++; primary = 1; check_settled() }
  :: /* Another node admits the new primary. */ atomic { admitted != primary -> admit() }
  :: atomic { faults < FAULTS && !crashed -> copy_state(disk, redis) }
  :: atomic { faults < FAULTS && !crashed -> crashed = true; faults++; run_id++; copy_state(redis, disk);
      /* Nothing that was confirmed is lost. */
      assert(promoted || !LACKS(rows[0], confirmed)) }
  od
}

init {
  byte i;
  atomic {
    for (i : 1 .. FLUSHERS) { run flusher() };
    run environment()
  }
}

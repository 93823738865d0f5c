/*
 * Incarnations: versions, ids and the journal of one partition (src/journal/recovery.ts, src/journal/flusher.ts,
 * src/journal/forget.ts, lua/partition, lua/lib/partition.lua, lua/lib/append.lua).
 *
 * One record, a chat, counts its message ids. Three nodes: one changes it, two flush its journal and recover the
 * partition. Redis may crash and lose its latest writes.
 *
 * Invariants, in the words of architecture.md:
 * - "so no id is assigned twice", and no version.
 * - "A row accepts newer versions only": the row never goes back to an earlier version.
 * - "A record leaves Redis only after its last version is in PostgreSQL".
 * - "Redis is the source of truth for hot data": an open partition has no record that is older than its row.
 */
#ifndef FLUSHERS
#define FLUSHERS 2
#endif
#ifndef CHANGES
#define CHANGES 2 /* in each incarnation; a crash loses at most as many ids */
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
/* The ids that a sequence skips after raises of the incarnation. */
#ifdef SKIPS_NOTHING
#define SKIP(raises) 0
#else
#ifdef SKIPS_ONCE_FOR_SEVERAL_RAISES
#define SKIP(raises) (raises == 0 -> 0 : CHANGES)
#else
#define SKIP(raises) (raises * CHANGES)
#endif
#endif
#define PER_INCARNATION 4 /* versions */
#define INCARNATION_OF(version) (version / PER_INCARNATION)

/* `open_for`: the run of Redis for which the partition is open. `counter`: the last version. The record has a version,
   its last message id, and the incarnation of that id. A version of 0 means that the record is not in Redis. `journal`:
   the newest entry of the journal, an image of the record; 0 if the journal is empty. */
typedef Keys { byte open_for; byte counter; byte version; byte id; byte id_under; byte journal; byte journal_id; byte journal_under };
Keys redis;
Keys disk; /* state that a crash leaves */
byte run_id = 1; /* of the Redis that runs now */
byte crashes = 0;

/* Postgres: the row of the partition and the row of the record. */
byte incarnation = 0;
byte flushed = 0; /* all versions up to this one are in Postgres */
byte row_version = 0;
byte row_id = 0;
byte row_id_under = 1; /* the incarnation under which the chat was created */

/* The highest version and id ever assigned, including those assigned by a Redis that later lost the data. */
byte version_max = 0;
byte id_max = 0;
byte changes = 0; /* since the partition was opened */

#ifdef NO_RUN_CHECK
#define OPEN (redis.open_for != 0)
#else
#define OPEN (redis.open_for == run_id)
#endif

inline copy_state(to, from) {
  to.open_for = from.open_for; to.counter = from.counter;
  to.version = from.version; to.id = from.id; to.id_under = from.id_under;
  to.journal = from.journal; to.journal_id = from.journal_id; to.journal_under = from.journal_under
}

inline print_state() {
  printf("state openfor=%d counter=%d version=%d id=%d idunder=%d journal=%d\n",
    redis.open_for, redis.counter, redis.version, redis.id, redis.id_under, redis.journal);
  printf("rows incarnation=%d flushed=%d version=%d id=%d idunder=%d\n",
    incarnation, flushed, row_version, row_id, row_id_under)
}

inline clear_state(store) {
  store.open_for = 0; store.counter = 0;
  store.version = 0; store.id = 0; store.id_under = 0;
  store.journal = 0; store.journal_id = 0; store.journal_under = 0
}

/* A script appends a message. It first fills the record from Postgres if it is not in Redis. */
inline append() {
  if
  :: redis.version == 0 ->
    redis.id = row_id; redis.id_under = row_id_under; printf("fill id=%d idunder=%d\n", row_id, row_id_under)
  :: else
  fi;
  redis.counter++;
  assert(redis.counter > version_max);
  version_max = redis.counter;
  redis.id = redis.id + 1 + SKIP((INCARNATION_OF(redis.counter) - redis.id_under));
  redis.id_under = INCARNATION_OF(redis.counter);
  assert(redis.id > id_max);
  id_max = redis.id;
  redis.version = redis.counter;
  redis.journal = redis.counter; redis.journal_id = redis.id; redis.journal_under = redis.id_under;
  changes++;
  printf("append version=%d id=%d\n", redis.counter, redis.id); print_state()
}

/* The flusher commits a batch. A row accepts newer versions only. */
inline commit() {
  if
#ifdef ROW_TAKES_ANY_VERSION
  :: batch != 0 ->
#else
  :: batch > row_version ->
#endif
    assert(batch > row_version);
    row_version = batch; row_id = batch_id; row_id_under = batch_id_under
  :: else
  fi;
  flushed = (batch > flushed -> batch : flushed);
  printf("commit flusher=%d known=%d refused=0\n", _pid, known); print_state()
}

inline trim() {
  if
  :: redis.journal <= batch -> redis.journal = 0; redis.journal_id = 0; redis.journal_under = 0
  :: else
  fi;
  printf("trim version=%d\n", batch); print_state()
}

/* partition/recover: opens the partition under a registered incarnation. */
inline open_partition() {
  if
  :: run_id != expected -> printf("open for=%d incarnation=%d moved=1 behind=0 opened=0\n", expected, raised)
  :: run_id == expected && redis.open_for == run_id ->
    printf("open for=%d incarnation=%d moved=0 behind=0 opened=0\n", expected, raised)
  :: else ->
    if
    :: INCARNATION_OF(redis.counter) >= raised ->
      printf("open for=%d incarnation=%d moved=0 behind=%d opened=0\n", expected, raised, redis.counter)
    :: else ->
      redis.open_for = run_id; redis.counter = raised * PER_INCARNATION; changes = 0;
      printf("open for=%d incarnation=%d moved=0 behind=0 opened=1\n", expected, raised); print_state()
    fi
  fi
}

proctype flusher() {
  byte known, batch, batch_id, batch_id_under, expected, seen, seen_flushed, highest, raised;
end:
  do
  :: /* The flusher reads the incarnation in Postgres, then the newest image of the record in the journal. It commits and
        trims. It may die in between. */
    atomic { redis.journal != 0 -> known = incarnation };
    atomic { batch = redis.journal; batch_id = redis.journal_id; batch_id_under = redis.journal_under;
      printf("read flusher=%d version=%d\n", _pid, batch) };
#ifdef KNOWS_INCARNATION_TOO_LATE
    atomic { known = incarnation };
#endif
#ifdef TRIM_BEFORE_COMMIT
    atomic { trim() };
#endif
    if
    :: /* Postgres refuses a batch if the incarnation was raised since it was read. */
#ifdef COMMITS_OLDER_BATCH
      atomic { commit() };
#else
      atomic { known == incarnation -> commit() };
#endif
      if
#ifndef TRIM_BEFORE_COMMIT
      :: atomic { trim() }
#endif
      :: true
      fi
    :: atomic { known != incarnation -> printf("commit flusher=%d known=%d refused=1\n", _pid, known) }
    :: true
    fi;
    atomic { known = 0; batch = 0; batch_id = 0; batch_id_under = 0 }
  :: /* Recovery of a closed partition. */
    atomic { !OPEN -> expected = run_id; seen = incarnation; seen_flushed = flushed };
    atomic { highest = redis.counter };
#ifndef KEEPS_OLDER_RECORDS
    atomic {
      if
      :: seen_flushed > highest && run_id == expected && !OPEN ->
        redis.version = 0; redis.id = 0; redis.id_under = 0; printf("forget for=%d\n", expected); print_state()
      :: else
      fi
    };
#endif
    atomic {
      raised = INCARNATION_OF(highest);
#ifdef RAISES_IN_REDIS_ALONE
      raised++
#else
      if
#ifdef RAISES_AFTER_UNSEEN_FLUSH
      :: incarnation == seen ->
#else
      :: incarnation == seen && (flushed <= highest || seen_flushed > highest) ->
#endif
        raised = (raised > incarnation -> raised : incarnation);
        raised = (INCARNATION_OF(flushed) > raised -> INCARNATION_OF(flushed) : raised) + 1;
        incarnation = raised;
        printf("raise seen=%d highest=%d lacks=%d raised=%d\n", seen, highest, seen_flushed > highest, raised); print_state()
      :: else ->
        printf("raise seen=%d highest=%d lacks=%d raised=0\n", seen, highest, seen_flushed > highest); raised = 0
      fi
#endif
    };
    atomic {
      if
      :: raised != 0 -> open_partition()
      :: else
      fi;
      expected = 0; seen = 0; seen_flushed = 0; highest = 0; raised = 0
    }
  od
}

proctype environment() {
end:
  do
  :: /* A node sends a message. */ atomic { OPEN && changes < CHANGES -> append() }
  :: /* The record expires. */
#ifdef EVICTS_UNFLUSHED
    atomic { OPEN && redis.version != 0 ->
#else
    atomic { OPEN && redis.version != 0 && redis.journal == 0 ->
#endif
      assert(row_version >= redis.version);
      redis.version = 0; redis.id = 0; redis.id_under = 0; printf("expire\n"); print_state() }
  :: atomic { crashes < CRASHES && redis.open_for == run_id -> copy_state(disk, redis); printf("sync\n") }
  :: atomic { crashes < CRASHES ->
      crashes++; run_id++; copy_state(redis, disk);
      if :: crashes == CRASHES -> clear_state(disk) :: else fi;
      printf("crash\n"); print_state() }
  od
}

proctype monitor() {
end:
  atomic { redis.open_for == run_id && redis.version != 0 && redis.version < row_version ->
    printf("record older than its row\n"); assert(false) }
}

init {
  byte i;
  atomic {
    for (i : 0 .. FLUSHERS - 1) { run flusher() };
    run environment();
    run monitor()
  }
}

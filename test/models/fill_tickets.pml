/*
 * Fill tickets: copies of control records in Redis (src/store/core/control.ts, lua/control).
 *
 * One record. Postgres has its version. Redis may have a copy, and a ticket for filling a missing copy. Three nodes read,
 * change and forget the record. A copy or ticket may expire at any time. Redis may crash and lose its latest writes.
 *
 * Invariants, in the words of architecture.md:
 * - "After the commit they update copies in Redis that have an older version": once the refresh of a committed version
 *   has ended, no copy has an earlier version.
 * - "Any write to the record in between invalidates the ticket": a fill that loaded an earlier version stores nothing.
 */
#ifndef NODES
#define NODES 3
#endif
#ifndef OPERATIONS
#define OPERATIONS 3 /* of all nodes together */
#endif
#ifndef VERSIONS
#define VERSIONS 3
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

byte committed = 1; /* version in Postgres */
byte refreshed = 1; /* highest version whose refresh has ended */

/* State of Redis. A version of 0 means that there is no copy, a ticket of 0 that there is no ticket. */
typedef Keys { byte version; byte copied_under; byte ticket };
Keys redis;
Keys disk; /* state that a crash leaves */
byte incarnation = 1;
bool closed = false; /* no node has recovered the partition since the crash */
byte crashes = 0;
byte operations = 0; /* begun; an operation uses its number as the token of its ticket */

#ifdef COPY_OUTLIVES_LOSS
#define PRESENT (redis.version != 0)
#else
#define PRESENT (redis.version != 0 && redis.copied_under == incarnation)
#endif

inline copy_state(to, from) {
  to.version = from.version;
  to.copied_under = from.copied_under;
  to.ticket = from.ticket
}

inline clear_state(store) {
  store.version = 0; store.copied_under = 0; store.ticket = 0
}

#define STALE (!closed && PRESENT && redis.version < refreshed)

/* The test replays the printed steps on the real scripts, and compares the printed state. */
inline show_state() {
  printf("state version=%d under=%d ticket=%d\n", redis.version, redis.copied_under, redis.ticket)
}

/* control/read: returns the copy, or a ticket. */
inline read_copy(token) {
  if
  :: PRESENT -> found = true; answer = 0
  :: else ->
    found = false;
    if
    :: redis.ticket == 0 -> redis.ticket = token
    :: else
    fi;
    answer = redis.ticket
  fi;
  read_under = incarnation;
  printf("read token=%d found=%d version=%d ticket=%d\n", token, found, (found -> redis.version : 0), answer);
  show_state()
}

#ifdef FILL_OUTLIVES_LOSS
#define HAS_TICKET (token != 0 && redis.ticket == token)
#else
#define HAS_TICKET (token != 0 && redis.ticket == token && read_under == incarnation)
#endif

/* control/write: a fill, or a refresh that replaces an older copy. */
inline write_copy(token, refresh, version) {
  if
  :: PRESENT ->
#ifdef REFRESH_IGNORES_VERSION
    writable = refresh
#else
    writable = (refresh && redis.version < version)
#endif
  :: else ->
#ifdef FILL_WITHOUT_TICKET
    writable = true
#else
#ifdef REFRESH_CREATES_COPY
    writable = refresh || HAS_TICKET
#else
    writable = HAS_TICKET
#endif
#endif
  fi;
  if
#ifdef REFRESH_KEEPS_TICKET
  :: writable -> redis.ticket = 0
#else
  :: writable || refresh -> redis.ticket = 0
#endif
  :: else
  fi;
  if
  :: writable -> redis.version = version; redis.copied_under = incarnation
  :: else
  fi;
  printf("write token=%d under=%d refresh=%d version=%d written=%d\n", token, read_under, refresh, version, writable);
  show_state()
}

/* control/forget: removes the copy and its ticket. */
inline forget_copy() {
  redis.version = 0; redis.copied_under = 0;
#ifndef FORGET_KEEPS_TICKET
  redis.ticket = 0;
#endif
  printf("forget\n");
  show_state()
}

inline refresh_ends(version) {
  if
  :: refreshed < version -> refreshed = version
  :: else
  fi
}

/* A node clears its variables after each operation, so that SPIN recognises equal states. */
proctype node() {
  byte version = 0, token = 0, answer = 0, read_under = 0;
  bool found = false, writable = false;
  do
  :: atomic { operations < OPERATIONS -> operations++; token = operations };
    if
    :: /* ControlCopies.read: a read, then a fill with the ticket. */
      atomic { !closed -> read_copy(token); token = answer; answer = 0 };
      if
      :: found -> skip
      :: else ->
        version = committed;
        atomic { !closed -> write_copy(token, false, version) }
      fi
    :: /* A change commits. Then ControlCopies.refresh reads, loads and writes. The sweep repeats a refresh that died. */
      atomic { committed < VERSIONS ->
#ifndef REFRESH_BEFORE_COMMIT
        committed++
#endif
      };
      atomic { !closed -> read_copy(token); token = answer; answer = 0 };
      version = committed;
      atomic { !closed -> write_copy(token, true, version);
#ifdef REFRESH_BEFORE_COMMIT
        committed++; version = committed;
#endif
        refresh_ends(version) }
    :: /* A change commits. Then ControlCopies.forget removes the copy. */
      atomic { committed < VERSIONS -> committed++; version = committed };
      atomic { forget_copy(); refresh_ends(version) }
    :: /* A change commits. Then ControlCopies.refreshMany loads and writes without a ticket. */
      atomic { committed < VERSIONS -> committed++ };
      version = committed;
      atomic { !closed -> token = 0; write_copy(token, true, version); refresh_ends(version) }
    fi;
    atomic { version = 0; token = 0; read_under = 0; found = false; writable = false }
  :: operations == OPERATIONS -> break
  od
}

proctype environment() {
end:
  do
  :: atomic { redis.version != 0 -> redis.version = 0; redis.copied_under = 0; printf("expire copy\n") }
  :: atomic { redis.ticket != 0 -> redis.ticket = 0; printf("expire ticket\n") }
  :: atomic { crashes < CRASHES -> copy_state(disk, redis); printf("sync\n") }
  :: atomic { crashes < CRASHES && !closed ->
      crashes++; closed = true; copy_state(redis, disk); clear_state(disk); printf("crash\n") }
  :: atomic { closed -> closed = false; incarnation++; printf("recover\n") }
  od
}

proctype monitor() {
end:
  atomic { STALE -> printf("stale copy\n"); assert(false) }
}

init {
  byte i;
  atomic {
    for (i : 0 .. NODES - 1) { run node() };
    run environment();
    run monitor()
  }
}

/*
 * The token lease: fronts cache tokens under a lease, and a call revokes a token (src/store/access/auth.ts, lua/auth).
 *
 * Three nodes: fronts look up one token, cache it and renew their leases; the last node revokes the token. Messages and
 * answers take any time. Redis may crash and lose its latest writes. All clocks run at the
 * same speed: a tick decrements every remaining time.
 *
 * Invariants, in the words of architecture.md:
 * - "A revoked token stops working everywhere before the call that revoked it answers".
 * - "A front uses its cached tokens only while its lease is valid".
 */
#ifndef FRONTS
#define FRONTS 2
#endif
#ifndef LEASE
#define LEASE 1 /* ticks; without a margin, because no clock drifts */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define NONE 15 /* Redis does not list the node */

/* Postgres, and the copy of the bot in Redis. A copy of an earlier incarnation counts as missing. */
bool valid = true;
bool copy_valid = true;
bool answered = false; /* the call that revoked the token has answered */

/* Redis: revocation epochs and the nodes with the epoch that they acknowledged. */
typedef Keys { byte epoch; byte acked[FRONTS] };
Keys redis;
Keys disk; /* state that a crash leaves */
byte incarnation = 1;
bool closed = false; /* no node has recovered the partition since the crash */
byte crashes = 0;

/* The revoking node: the incarnation that it saw last, for how many ticks, and the rest of its wait. */
byte seen = 0;
byte seen_for = 0;
byte wait_left = 0;

/* The fronts. `granted_left`: the rest of the lease that the renewal in progress will grant. `caches`: a look-up is in
   progress whose result the front will cache. `known`: the incarnation of `epoch`. */
typedef Front { byte lease_left; byte granted_left; byte epoch; byte known; bool caches; bool cached };
Front front[FRONTS];

#define ACCEPTS(i) (front[i].cached && front[i].lease_left > 0)

inline copy_state(to, from) {
  to.epoch = from.epoch;
  for (i : 0 .. FRONTS - 1) { to.acked[i] = from.acked[i] };
  i = 0
}

inline clear_state(store) {
  store.epoch = 0;
  for (i : 0 .. FRONTS - 1) { store.acked[i] = 0 };
  i = 0
}

/* auth/renew: acknowledges what this front has discarded, and returns the revocations since. */
inline renew() {
  epoch = redis.epoch;
  answer_under = incarnation;
  from = front[self].epoch;
  revoked = false;
  if
#ifdef EPOCHS_OUTLIVE_LOSS
  :: from > epoch -> from = 0; revoked = true
#else
  :: front[self].known != incarnation || from > epoch -> from = 0; revoked = true
#endif
  :: else -> revoked = (from < epoch)
  fi;
#ifdef ACKNOWLEDGES_BEFORE_FORGETTING
  redis.acked[self] = epoch;
#else
  redis.acked[self] = from;
#endif
  printf("renew front=%d known=%d from=%d acked=%d epoch=%d incarnation=%d revoked=%d\n",
    self, front[self].known, front[self].epoch, redis.acked[self], epoch, incarnation, revoked)
}

proctype renewing(byte self) {
  byte epoch, answer_under, from;
  bool revoked;
end:
  do
  :: /* Redis runs the script when it is sent. A script that runs later grants less, since the lease counts from here. */
    atomic { !closed -> front[self].granted_left = LEASE; renew(); from = 0 };
    atomic {
      if
      :: revoked -> front[self].cached = false; front[self].caches = false
      :: else
      fi;
      front[self].epoch = epoch;
      front[self].known = answer_under;
#ifdef LEASE_FROM_RECEIPT
      front[self].lease_left = LEASE;
#else
      front[self].lease_left = front[self].granted_left;
#endif
      front[self].granted_left = 0; epoch = 0; answer_under = 0; revoked = false
    }
  od
}

proctype looking(byte self) {
end:
  do
  :: atomic { !front[self].cached && !closed && copy_valid -> front[self].caches = true };
    atomic {
#ifdef CACHES_AFTER_REVOCATION
      front[self].cached = true;
#else
      front[self].cached = front[self].caches;
#endif
      front[self].caches = false
    }
  od
}

inline refresh_copy() { atomic { copy_valid = valid } }

/* auth/revoke: raises the epoch. */
inline revoke() {
  redis.epoch++;
  epoch = redis.epoch;
  raised_under = incarnation;
  printf("revoke epoch=%d incarnation=%d\n", epoch, incarnation)
}

/* auth/pending: counts the nodes that have not acknowledged the epoch. */
inline count_pending() {
  pending = 0;
  for (i : 0 .. FRONTS - 1) {
    if
    :: redis.acked[i] < epoch -> pending++
    :: else
    fi
  };
  i = 0;
#ifndef PENDING_IGNORES_LOSS
  if
  :: raised_under != incarnation -> pending++
  :: else
  fi;
#endif
  printf("pending epoch=%d under=%d pending=%d\n", epoch, raised_under, pending)
}

#ifdef WAITS_TOO_SHORT
#define WAIT (LEASE - 1)
#else
#define WAIT LEASE
#endif

proctype revoking() {
  byte i, epoch, raised_under, pending;
  atomic { valid = false };
#ifdef EPOCH_BEFORE_COPY
  atomic { !closed -> revoke(); wait_left = WAIT };
  refresh_copy();
#else
  refresh_copy();
  atomic { !closed -> revoke(); wait_left = WAIT };
#endif
  if
#ifndef TRUSTS_A_NEW_REDIS
  :: raised_under != seen || seen_for < LEASE -> wait_left == 0
#endif
  :: else ->
    do
#ifdef PENDING_IGNORES_LOSS
    :: atomic { count_pending() };
#else
    :: atomic { !closed -> count_pending() };
#endif
      if
      :: pending == 0 -> break
      :: wait_left == 0 -> break
      :: else
      fi
    od
  fi;
  atomic { answered = true; pending = 0; epoch = 0; raised_under = 0 }
}

#define DECREMENT(left) left = (left > 0 -> left - 1 : 0)

inline tick() {
  for (i : 0 .. FRONTS - 1) {
    DECREMENT(front[i].lease_left);
    DECREMENT(front[i].granted_left)
  };
  i = 0;
  DECREMENT(wait_left);
  seen_for = (seen_for < LEASE -> seen_for + 1 : LEASE)
}

proctype environment() {
  byte i;
end:
  do
  :: atomic { tick() }
  :: atomic { !closed && seen != incarnation -> seen = incarnation; seen_for = 0 }
  :: atomic { crashes < CRASHES -> copy_state(disk, redis); printf("sync\n") }
  :: atomic { crashes < CRASHES && !closed ->
      crashes++; closed = true; copy_state(redis, disk); clear_state(disk); copy_valid = valid; printf("crash\n") }
  :: atomic { closed -> closed = false; incarnation++; printf("recover\n") }
  od
}

proctype monitor() {
end:
  atomic { answered && (ACCEPTS(0) || ACCEPTS(1)) -> printf("revoked token accepted\n"); assert(false) }
}

init {
  byte i;
  atomic {
    for (i : 0 .. FRONTS - 1) {
      redis.acked[i] = NONE;
      disk.acked[i] = NONE;
      run renewing(i);
      run looking(i)
    };
    run revoking();
    run environment();
    run monitor()
  }
}

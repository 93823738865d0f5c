/*
 * The outbox: updates for bots of other partitions, and the marks of their queues (src/store/updates/forwarder.ts,
 * lua/updates/read_outbox.lua, accept_forwarded.lua and trim_outbox.lua).
 *
 * Three nodes: one sends messages, two forward the outbox to two bots. A forwarder may find a bot unreachable, and may
 * die at any step. Redis may crash and lose the latest writes of all partitions.
 *
 * Invariants, in the words of architecture.md:
 * - "A forwarder moves updates from the outbox to the queues in order": an update is in the queue of its bot, or it is
 *   in the outbox and above the mark of the queue.
 * - "A queue stores the last id of each source partition, so no update enters it twice".
 */
#ifndef FORWARDERS
#define FORWARDERS 2
#endif
#ifndef SENDS
#define SENDS 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define BOTS 2
#define ALL_BOTS 3 /* a set of bots: one bit for each */

/* Sets of updates: update n is bit n - 1. Numbers are versions, which a crash never lets Redis assign twice. */
#define ABOVE(n) ((255 << (n)) & 255)
#define UP_TO(n) (255 - ABOVE(n))

typedef Keys { byte sent; byte outbox; byte queue[BOTS]; byte mark[BOTS] };
Keys redis;
Keys disk; /* state that a crash leaves */
byte incarnation = 1;
bool closed = false; /* no node has recovered the partitions since the crash */
byte crashes = 0;
byte sends = 0;

#define LOST(b) ((redis.sent & ~redis.queue[b] & ~(redis.outbox & ABOVE(redis.mark[b]))) != 0)

inline copy_state(to, from) {
  to.sent = from.sent; to.outbox = from.outbox;
  to.queue[0] = from.queue[0]; to.queue[1] = from.queue[1];
  to.mark[0] = from.mark[0]; to.mark[1] = from.mark[1]
}

inline print_state() {
  printf("state outbox=%d first=%d second=%d firstmark=%d secondmark=%d\n",
    redis.outbox, redis.queue[0], redis.queue[1], redis.mark[0], redis.mark[1])
}

inline clear_state(store) {
  store.sent = 0; store.outbox = 0;
  store.queue[0] = 0; store.queue[1] = 0;
  store.mark[0] = 0; store.mark[1] = 0
}

/* The last update of a batch. */
inline set_last() {
  last = SENDS;
  do
  :: last > 0 && (batch & (1 << (last - 1))) == 0 -> last--
  :: else -> break
  od
}

/* updates/accept_forwarded: queues the updates above the mark, and raises the mark. */
inline accept(b, read_under) {
#ifdef QUEUE_WITHOUT_MARK
  new = batch;
#else
  new = batch & ABOVE(redis.mark[b]);
#endif
#ifdef HANDS_OVER_OUT_OF_ORDER
  new = new & ~UP_TO(last - 1);
#endif
  assert((redis.queue[b] & new) == 0);
  redis.queue[b] = redis.queue[b] | new;
  redis.mark[b] = (redis.mark[b] > last -> redis.mark[b] : last);
  printf("accept bot=%d batch=%d under=%d\n", b, batch, read_under); print_state();
  new = 0
}

inline refuse(b, read_under) {
  printf("refuse bot=%d batch=%d under=%d\n", b, batch, read_under)
}

#ifdef BATCH_OUTLIVES_LOSS
#define MOVED(read_under) false
#else
#define MOVED(read_under) (read_under != incarnation)
#endif

inline trim() {
  atomic { !closed ->
    if
#ifndef TRIM_IGNORES_LOSS
    :: under != incarnation -> printf("trim last=%d under=%d moved=1\n", last, under)
#endif
    :: else ->
      redis.outbox = redis.outbox & ABOVE(last); printf("trim last=%d under=%d moved=0\n", last, under); print_state()
    fi
  }
}

inline forget_batch() { batch = 0; last = 0; todo = 0; failed = 0; under = 0 }

/* `owed`: unreachable bots. `passed`: the last update that the other bots have. 0 means that there is no detour. */
proctype forwarder() {
  byte batch, last, todo, failed, owed, passed, under, retried_under, new;
end:
  do
  :: /* A run hands all updates to the reachable bots. */
    atomic { !closed && (redis.outbox & ABOVE(passed)) != 0 ->
      batch = redis.outbox & ABOVE(passed); under = (passed == 0 -> incarnation : under); set_last();
      printf("read after=%d batch=%d incarnation=%d\n", passed, batch, incarnation);
#ifdef OWED_BOTS_GET_LATER_UPDATES
      todo = ALL_BOTS
#else
      todo = ALL_BOTS & ~owed
#endif
    };
#ifdef TRIM_BEFORE_HANDOVER
    trim();
#endif
    do
    :: atomic { (todo & 1) && !closed -> todo = todo & ~1;
        if :: MOVED(under) -> failed = failed | 1; refuse(0, under) :: else -> accept(0, under) fi }
    :: atomic { (todo & 2) && !closed -> todo = todo & ~2;
        if :: MOVED(under) -> failed = failed | 2; refuse(1, under) :: else -> accept(1, under) fi }
    :: atomic { (todo & 1) -> todo = todo & ~1; failed = failed | 1 }
    :: atomic { (todo & 2) -> todo = todo & ~2; failed = failed | 2 }
    :: todo == 0 -> break
    :: /* The node dies. */ atomic { todo != 0 -> owed = 0; passed = 0; forget_batch(); break }
    od;
    if
    :: last == 0 -> skip
#ifdef TRIM_DURING_DETOUR
    :: last != 0 -> trim(); atomic { owed = 0; passed = 0; forget_batch() }
#else
    :: last != 0 && failed == 0 && owed == 0 -> trim(); forget_batch()
    :: atomic { last != 0 && (failed != 0 || owed != 0) ->
        owed = owed | failed; passed = last; batch = 0; last = 0; failed = 0 }
#endif
    fi
  :: /* A retry hands all updates from the start of the outbox to the owed bots. Then the detour ends. */
    atomic { !closed && owed != 0 ->
      batch = redis.outbox; retried_under = incarnation; set_last(); todo = owed;
      printf("read after=0 batch=%d incarnation=%d\n", batch, incarnation) };
    do
    :: atomic { (todo & 1) && !closed -> todo = todo & ~1;
        if :: MOVED(retried_under) -> failed = failed | 1; refuse(0, retried_under)
        :: else -> accept(0, retried_under) fi }
    :: atomic { (todo & 2) && !closed -> todo = todo & ~2;
        if :: MOVED(retried_under) -> failed = failed | 2; refuse(1, retried_under)
        :: else -> accept(1, retried_under) fi }
    :: atomic { todo != 0 -> failed = todo; todo = 0 }
    :: todo == 0 -> break
    od;
    atomic {
      if
      :: failed == 0 -> owed = 0; passed = 0; forget_batch()
      :: else -> batch = 0; last = 0; failed = 0
      fi;
      retried_under = 0
    }
  od
}

proctype environment() {
end:
  do
  :: atomic { !closed && sends < SENDS ->
      redis.outbox = redis.outbox | (1 << sends); redis.sent = redis.sent | (1 << sends);
      sends++; printf("send update=%d\n", sends); print_state() }
  :: atomic { crashes < CRASHES -> copy_state(disk, redis); printf("sync\n") }
  :: atomic { crashes < CRASHES && !closed ->
      crashes++; closed = true; copy_state(redis, disk); clear_state(disk); printf("crash\n") }
  :: atomic { closed -> closed = false; incarnation++; printf("recover\n"); print_state() }
  od
}

proctype monitor() {
end:
  atomic { LOST(0) || LOST(1) -> printf("update lost\n"); assert(false) }
}

init {
  byte i;
  atomic {
    for (i : 0 .. FORWARDERS - 1) { run forwarder() };
    run environment();
    run monitor()
  }
}

/**
 * Runs the periodic sweep. It finishes the work of dead processes, applies pending edits, sends due reaction counts and
 * polls, refreshes stale copies in Redis, and forwards pending outbox entries. Any number of nodes may sweep, because
 * every step can be repeated.
 */
import { type StaleRow, takeStale } from '../../postgres/sql.js';
import type { Auth } from '../access/auth.js';
import type { WriteAccessCopies } from '../access/write_access.js';
import type { Accounts } from '../accounts/accounts.js';
import type { Identities } from '../accounts/identities.js';
import type { RemovalFollowing } from '../bots/removal.js';
import type { Chats } from '../chats/chats.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies, ControlSubject } from '../core/control.js';
import type { PendingEdits } from '../messages/pending_edits.js';
import type { PostCounts } from '../posts/post_counts.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { Votes } from '../votes/votes.js';
import type { Replays } from '../webhooks/replays.js';
import type { Webhooks } from '../webhooks/webhooks.js';

const intervalMs = 1_000;
/**
 * The maximum time between two checks for stale copies while there are none. The checks can be rare, because normally
 * each change refreshes its own copies.
 */
const copiesIntervalMsMax = 4_000;
const batchMax = 100;

export interface SweepParts {
  readonly control: ControlCopies;
  readonly chats: Chats;
  readonly auth: Auth;
  readonly forwarder: Forwarder;
  readonly webhooks: Webhooks;
  readonly pendingEdits: PendingEdits;
  readonly postCounts: PostCounts;
  readonly votes: Votes;
  readonly replays: Replays;
  readonly identities: Identities;
  readonly access: WriteAccessCopies;
  readonly removal: RemovalFollowing;
  readonly accounts: Pick<Accounts, 'follow'>;
}

/**
 * Completes a committed change whose copies, events or updates are still missing, for example because a process died.
 */
async function complete(parts: SweepParts, { subject, subject_id: id, other_id: other }: StaleRow) {
  const { control } = parts;
  switch (subject) {
    case 'chat':
      return parts.chats.refresh({ id, user: other });
    case 'name':
      return parts.chats.refreshName(id);
    case 'member_events':
      return parts.chats.postEvents({ id, user: other });
    case 'webhook':
      return parts.webhooks.refresh(id, other);
    case 'webhook_lost':
      return parts.webhooks.lost(id);
    case 'identity':
      return parts.identities.refresh(id);
    case 'bot_gone':
      return parts.removal.follow(id);
    case 'user_gone':
      return parts.accounts.follow(id);
    case 'write_access':
      return parts.access.refresh(id);
    case 'replay':
      return parts.replays.finish(id, other);
    case 'bot':
    case 'user':
      await control.forget(subject, id);
      return parts.auth.revoke(`${subject}:${id}`);
  }
  // If `subject` ends in `_copy`, only the format of the copy is outdated. Refreshes the copy without revoking tokens.
  if (subject.endsWith('_copy'))
    return control.refresh(subject.slice(0, -'_copy'.length) as ControlSubject, id);
  return control.refresh(subject as ControlSubject, id, other);
}

/** Sweeps on one node, once per interval, from `start` to `stop`. */
export class Sweep {
  readonly #context: StoreContext;
  readonly #parts: SweepParts;
  readonly #onError: (error: unknown) => void;
  /** The current interval between two checks for stale copies. `#copiesAt` is the monotonic time of the next check. */
  #copiesIntervalMs = intervalMs;
  #copiesAt = 0;
  #running: Promise<void> | undefined;
  readonly #stopping = new AbortController();

  constructor(context: StoreContext, parts: SweepParts, onError: (error: unknown) => void) {
    this.#context = context;
    this.#parts = parts;
    this.#onError = onError;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#parts.pendingEdits.stop();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { time } = this.#context;
    while (!signal.aborted) {
      // Waits at most `intervalMs` for the partitions. If one master of a cluster has failed, the next sweep of the
      // other masters is thus not delayed.
      const partitions = this.#sweepPartitions().catch(this.#onError);
      await Promise.all([this.#checkCopies(), time.within(intervalMs, partitions)]);
      await time.sleep(time.untilNext(intervalMs), { signal });
    }
  }

  async #checkCopies(): Promise<void> {
    if (this.#context.time.monotonic() < this.#copiesAt) return;
    const late = this.#parts.replays.finishOld(intervalMs).catch(this.#onError);
    const [found] = await Promise.all([this.#sweepCopies().catch(this.#onError), late]);
    this.#copiesIntervalMs =
      found === 0 ? Math.min(copiesIntervalMsMax, this.#copiesIntervalMs * 2) : intervalMs;
    // Lets the next check run up to half an interval early, because timers are not exact.
    this.#copiesAt = this.#context.time.monotonic() + this.#copiesIntervalMs - intervalMs / 2;
  }

  /**
   * Refreshes stale copies, for at most a second per sweep, because a person with many chats can make thousands of
   * copies stale. Returns the number of refreshed copies.
   */
  async #sweepCopies(): Promise<number> {
    const { time } = this.#context;
    const end = time.monotonic() + intervalMs;
    for (let sum = 0; ; ) {
      // Removes a stale copy's row in the transaction in which the copy is refreshed. If the refresh fails, the row
      // stays.
      const found = await takeStale(this.#context.db, intervalMs, batchMax, (row) => this.#refresh(row));
      sum += found;
      if (found < batchMax || time.monotonic() > end || this.#stopping.signal.aborted) return sum;
    }
  }

  /** Refreshes one copy. Returns false if the refresh must be retried. */
  async #refresh(row: StaleRow): Promise<boolean> {
    try {
      await complete(this.#parts, row);
      return true;
    } catch (error) {
      this.#onError(error);
      return false;
    }
  }

  async #sweepPartitions(): Promise<void> {
    const { scripts, keys } = this.#context;
    const waiting = await scripts.partitionsWith(keys.partitions.count, (partition) => [
      keys.countsDue(partition),
      keys.pollsDue(partition),
      keys.editsDue(partition),
      keys.outbox(partition),
    ]);
    await Promise.all(
      waiting.map(async (partition) => {
        await this.#parts.pendingEdits.apply(partition).catch(this.#onError);
        await this.#parts.postCounts.tellCounts(partition).catch(this.#onError);
        await this.#parts.votes.tell(partition).catch(this.#onError);
        await this.#parts.forwarder.forwardAll(partition).catch(this.#onError);
      }),
    );
  }
}

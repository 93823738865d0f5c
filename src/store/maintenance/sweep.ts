/**
 * Periodic sweep: finishes the work of processes that died, and sends due reaction counts. It refreshes stale copies in
 * Redis and forwards pending outbox entries. Every step is repeatable, so any number of nodes may sweep.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { within } from '../../clock.js';
import { type StaleRow, takeStale } from '../../postgres/sql.js';
import type { Auth } from '../access/auth.js';
import type { WriteAccessCopies } from '../access/write_access.js';
import type { Accounts } from '../accounts/accounts.js';
import type { Identities } from '../accounts/identities.js';
import type { RemovalFollowing } from '../bots/removal.js';
import type { Chats } from '../chats/chats.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies, ControlSubject } from '../core/control.js';
import type { PostCounts } from '../posts/post_counts.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { Replays } from '../webhooks/replays.js';
import type { Webhooks } from '../webhooks/webhooks.js';

export interface Sweep {
  start(): void;
  stop(): Promise<void>;
}

const intervalMs = 1_000;
/**
 * Maximum interval between two checks for stale copies while there are none. Changes normally refresh their copies
 * themselves.
 */
const copiesIntervalMsMax = 4_000;
const batchMax = 100;

export function createSweep(
  context: StoreContext,
  parts: {
    readonly control: ControlCopies;
    readonly chats: Chats;
    readonly auth: Auth;
    readonly forwarder: Forwarder;
    readonly webhooks: Webhooks;
    readonly posts: PostCounts;
    readonly replays: Replays;
    readonly identities: Identities;
    readonly access: WriteAccessCopies;
    readonly removal: RemovalFollowing;
    readonly accounts: Pick<Accounts, 'follow'>;
  },
  onError: (error: unknown) => void,
): Sweep {
  const { db, keys, scripts } = context;
  const { control, chats, auth, forwarder, webhooks, posts, replays, access, removal, identities, accounts } =
    parts;

  /** Completes a change in place of the process that made it. Returns false if it must be retried. */
  async function refresh({ subject, subject_id: id, other_id: other }: StaleRow): Promise<boolean> {
    try {
      if (subject === 'chat') await chats.refresh({ id, user: other });
      else if (subject === 'name') await chats.refreshName(id);
      else if (subject === 'member_events') await chats.postEvents({ id, user: other });
      else if (subject === 'webhook') await webhooks.refresh(id, other);
      else if (subject === 'webhook_lost') await webhooks.lost(id);
      else if (subject === 'identity') await identities.refresh(id);
      else if (subject === 'bot_gone') await removal.follow(id);
      else if (subject === 'user_gone') await accounts.follow(id);
      else if (subject === 'write_access') await access.refresh(id);
      else if (subject === 'replay') await replays.finish(id, other);
      // Only the copy's form is outdated, not its content, so nothing needs to be revoked.
      else if (subject.endsWith('_copy'))
        await control.refresh(subject.slice(0, -'_copy'.length) as ControlSubject, id);
      else if (subject === 'bot' || subject === 'user') {
        await control.forget(subject, id);
        await auth.revoke(`${subject}:${id}`);
      } else await control.refresh(subject as ControlSubject, id, other);
      return true;
    } catch (error) {
      onError(error);
      return false;
    }
  }

  /** Refreshes stale copies. Returns how many. */
  async function sweepCopies(): Promise<number> {
    for (let sum = 0; ; ) {
      // The transaction that takes a row commits after the refresh, so a failed refresh keeps its row.
      const found = await takeStale(db, intervalMs, batchMax, refresh);
      sum += found;
      if (found < batchMax) return sum;
    }
  }

  async function sweepPartition(partition: number): Promise<void> {
    await posts.tellCounts(partition).catch(onError);
    await forwarder.forwardAll(partition).catch(onError);
  }

  async function sweepPartitions(): Promise<void> {
    const waiting = await scripts.partitionsWith(keys.partitions.count, (partition) => [
      keys.countsDue(partition),
      keys.outbox(partition),
    ]);
    await Promise.all(waiting.map(sweepPartition));
  }

  let copiesIntervalMs = intervalMs;
  let copiesAt = 0;

  async function checkCopies(): Promise<void> {
    if (performance.now() < copiesAt) return;
    const late = replays.finishOld(intervalMs).catch(onError);
    const [found] = await Promise.all([sweepCopies().catch(onError), late]);
    copiesIntervalMs = found === 0 ? Math.min(copiesIntervalMsMax, copiesIntervalMs * 2) : intervalMs;
    // The next check is planned half an interval early, because timers are not exact.
    copiesAt = performance.now() + copiesIntervalMs - intervalMs / 2;
  }

  let running: Promise<void> | undefined;
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      // One failed master of a cluster must not delay the next sweep of the others.
      await Promise.all([checkCopies(), within(intervalMs, sweepPartitions().catch(onError))]);
      await sleep(intervalMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  return {
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

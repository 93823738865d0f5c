/**
 * The task `redis rebuild`: after Redis lost its data, opens what Postgres has of it and says what is gone. Nodes would do the same
 * on their own, partition by partition; this does it at once and tells.
 */
import { journalState, lastLoss } from '../journal/state.js';
import { limits } from '../limits.js';
import { asDatabase } from '../postgres/sql.js';
import { listWebhooks } from '../postgres/webhooks/webhooks.js';
import type { Backends } from '../processes/backends.js';
import { describeRecords } from '../store/core/redis_state.js';

/** Opens the queue of each bot with a webhook, as its next update would: with the kinds that it asked for. */
async function openQueues({ pool, store }: Backends): Promise<number> {
  const db = asDatabase(pool);
  let opened = 0;
  for (let after = 0; ; ) {
    const page = await listWebhooks(db, after, limits.page_size_max);
    await Promise.all(page.map(({ id }) => store.queues.open(id)));
    opened += page.length;
    const last = page.at(-1);
    if (last === undefined || page.length < limits.page_size_max) return opened;
    after = last.id;
  }
}

/** Every partition was opened when the backends were. */
export async function rebuildRedis(backends: Backends, say: (line: string) => void): Promise<void> {
  const { pool, connection } = backends;
  const state = await journalState(backends);
  const waiting = state.reduce((sum, { length }) => sum + length, 0);
  const loss = await lastLoss(pool);
  say(`partitions   ${state.length} on ${connection.nodes().length} of Redis, all open`);
  if (loss === null) say('lost         nothing that Postgres knows of');
  else {
    const flushed = loss.flushed_at === null ? 'never' : new Date(loss.flushed_at).toISOString();
    say(`lost         noticed ${new Date(loss.at).toISOString()} in ${loss.partitions} partitions:`);
    say(`             what was acknowledged and not written behind; the last write before was ${flushed}`);
  }
  say(`journal      ${waiting} entries wait for Postgres`);
  say(`webhooks     ${await openQueues(backends)} queues are open`);
  say('records      of Redis, and where each comes from after a loss:');
  for (const line of describeRecords()) say(line);
}

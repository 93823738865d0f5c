/**
 * The task `redis rebuild`: after Redis lost its data, loads the data that Postgres has and reports the data that is
 * lost. Nodes would load it on demand, partition by partition; this task loads all of it at once.
 */
import { journalState, lastLoss } from '../journal/state.js';
import { limits } from '../limits.js';
import { asDatabase } from '../postgres/sql.js';
import { listWebhooks } from '../postgres/webhooks/webhooks.js';
import type { Backends } from '../processes/backends.js';
import { describeRecords } from '../store/core/redis_state.js';

/** Opens the queue of each bot with a webhook, with its allowed update kinds, as its next update would. */
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

/** Prints what was lost, and opens the bots' queues. Opening the backends has already opened every partition. */
export async function rebuildRedis(backends: Backends, say: (line: string) => void): Promise<void> {
  const { pool, connection } = backends;
  const state = await journalState(backends);
  const waiting = state.reduce((sum, { length }) => sum + length, 0);
  const loss = await lastLoss(pool);
  say(`partitions   ${state.length} on ${connection.nodes().length} Redis servers, all open`);
  if (loss === null) say('lost         no loss is recorded in Postgres');
  else {
    const flushed = loss.flushed_at === null ? 'never' : new Date(loss.flushed_at).toISOString();
    say(`lost         noticed ${new Date(loss.at).toISOString()} in ${loss.partitions} partitions:`);
    say(
      `             acknowledged changes that were not in Postgres; the last write to Postgres before was ${flushed}`,
    );
  }
  say(`journal      ${waiting} entries waiting for Postgres`);
  say(`webhooks     ${await openQueues(backends)} queues are open`);
  say('records      kinds of records in Redis, and how each is restored:');
  for (const line of describeRecords()) say(line);
}

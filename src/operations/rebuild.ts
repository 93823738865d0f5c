/**
 * Loads all data from Postgres after Redis has lost its data, and reports what is lost (task `redis rebuild`). Without
 * this task, nodes load the data on demand, one partition at a time.
 */
import { journalState, lastLoss } from '../journal/state.js';
import { asDatabase } from '../postgres/sql.js';
import { listWebhooks } from '../postgres/webhooks/webhooks.js';
import type { Backends } from '../processes/backends.js';
import { allPages } from '../server/pages.js';
import { describeRecords } from '../store/core/redis_state.js';

/**
 * Opens the queue of each bot with a webhook, for the update kinds that the bot allows. The queue would otherwise be
 * opened only at the bot's next update.
 */
async function openQueues({ pool, store }: Backends): Promise<number> {
  const db = asDatabase(pool);
  let opened = 0;
  const read = (after: number, limit: number) => listWebhooks(db, after, limit);
  for await (const page of allPages(read, ({ id }) => id)) {
    await Promise.all(page.map(({ id }) => store.queues.open(id)));
    opened += page.length;
  }
  return opened;
}

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

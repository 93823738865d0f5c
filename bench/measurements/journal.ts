/**
 * For goal P4: measures how many rows per second the flusher writes from the journal to Postgres. The flusher is
 * stopped while a backlog grows, and then started. For comparison, a plain loop writes the same rows for chats that do
 * not exist.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inParallel, makePair, type Pair } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import type { JournalFloorTask, JournalRow } from '../floors/journal_floor.js';
import { known, median } from '../measure.js';
import { untilFlushed } from '../service/fill_reactions.js';
import { makeMessages, text } from '../service/population.js';
import { cpuSeconds, cpuSecondsOfTree, serverCore, unpin } from '../service/processes.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

/** How many chats fill the backlog. Each chat has a separate bot, so the backlog is spread over several partitions. */
const chats = 8;
/** The maximum number of bots to create. Bots are created until all databases have the same number of bots. */
const bots_tried = 1_000;
/** The first chat id in the rows of the comparison loop. No chat of the service has such a high id. */
const strangers_from = 6_000_000_000_000;
const goal = 0.85;
const share_measured = [0.1, 0.95] as const;

async function waitingRows({ client, keys }: RedisWatch, partitions: number): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    for (const [id, fields] of await client.xrangeBuffer(keys.journal(partition), '-', '+')) {
      const [, name, , image] = fields;
      const [, chat, user, message] = /^msg:(\d+)\.(\d+):(\d+)$/.exec(String(name)) ?? [];
      if (chat === undefined || image === undefined) continue;
      const version = Number(String(id).split('-')[0]);
      rows.push([
        strangers_from + Number(chat),
        Number(user),
        Number(message),
        version,
        image.toString('base64'),
      ]);
    }
  }
  return rows;
}

/**
 * Creates the same number of bots in each database, each with one chat. If one database had more bots than the others,
 * its rate alone would determine the result. The service assigns partitions to the databases in rotation.
 */
async function makePairs(
  { front, adminToken, parts }: Service,
  { keys }: RedisWatch,
): Promise<readonly Pair[]> {
  const found: Pair[][] = Array.from({ length: Math.max(1, parts.databases.length) }, () => []);
  const each = Math.ceil(chats / found.length);
  for (let i = 0; found.some((own) => own.length < each); i++) {
    expect(i < bots_tried, 'the ids of new bots do not spread over the databases');
    const pair = await makePair(front.baseUrl, adminToken, `journal_${i}`);
    const own = found[keys.partitions.of(pair.bot.id) % found.length] as Pair[];
    if (own.length < each) own.push(pair);
  }
  return found.flat();
}

interface Turn {
  readonly rate: number;
  /** The CPU time of the writing process per row, in µs. */
  readonly own: number;
  readonly postgres: number;
  readonly redis: number;
}

/**
 * Starts the flusher. The measurement begins when a tenth of the backlog is written, because the flusher first acquires
 * its leases, and ends shortly before the journals are empty. Checks only journals that are not empty: checking all
 * journals every few milliseconds would use a fifth of a core.
 */
async function flusherTurn(
  { parts, partitions, profile, signal }: Service,
  watch: RedisWatch,
  count: number,
): Promise<Turn> {
  const [from, until] = share_measured.map((share) => count * (1 - share)) as [number, number];
  const reading = () => ({
    at: performance.now(),
    own: cpuSeconds(parts.flush),
    postgres: [parts.postgres, ...parts.databases].reduce((sum, pid) => sum + cpuSecondsOfTree(pid), 0),
    redis: cpuSeconds(parts.redis),
  });
  const journals = Array.from({ length: partitions }, (_, partition) => watch.keys.journal(partition));
  const lengths = await Promise.all(journals.map((key) => watch.client.xlen(key)));
  const holding = journals.filter((_, i) => (lengths[i] as number) > 0);
  const waiting = async () =>
    (await Promise.all(holding.map((key) => watch.client.xlen(key)))).reduce((a, b) => a + b, 0);
  process.kill(parts.flush, 'SIGCONT');
  profile(parts.flush);
  let began: (ReturnType<typeof reading> & { left: number }) | undefined;
  for (;;) {
    const left = await waiting();
    if (!began && left <= from) began = { ...reading(), left };
    if (left <= until) {
      const ended = reading();
      profile(parts.flush);
      const start = began ?? { ...ended, left };
      const rows = start.left - left;
      expect(rows > 0, 'the backlog was written too quickly to measure: use more entries');
      const each = (seconds: number) => (seconds * 1e6) / rows;
      return {
        rate: (rows * 1_000) / (ended.at - start.at),
        own: each(ended.own - start.own),
        postgres: each(ended.postgres - start.postgres),
        redis: each(ended.redis - start.redis),
      };
    }
    await sleep(5, undefined, { signal });
  }
}

async function floorTurn(service: Service, rows: readonly JournalRow[]): Promise<Turn> {
  const task: JournalFloorTask = { databaseUrl: service.databaseUrl, rows: [] };
  const floor = await service.startProgram<{ ms: number }>('floors/journal_floor', task, serverCore);
  unpin(floor.pid);
  const costs = () => ({ own: cpuSeconds(floor.pid), postgres: cpuSecondsOfTree(service.parts.postgres) });
  const before = costs();
  const answer = once(floor.child, 'message', { signal: service.signal });
  floor.child.send({ ...task, rows });
  const [{ ms }] = (await answer) as [{ ms: number }];
  const after = costs();
  await floor.stop();
  const each = (seconds: number) => (seconds * 1e6) / rows.length;
  return {
    rate: (rows.length * 1_000) / ms,
    own: each(after.own - before.own),
    postgres: each(after.postgres - before.postgres),
    redis: 0,
  };
}

export const journal: Measurement = {
  name: 'journal',
  async run(service, watch, { rounds, backlog, progress }): Promise<Finding[]> {
    const pairs = await makePairs(service, watch);
    const turns: Array<{ readonly own: Turn; readonly floor: Turn }> = [];
    // No server is measured, so every process may use every core.
    service.unpin();
    // Round 0 warms up the flusher, and the plain loop with which the flusher is compared.
    for (let i = 0; i <= rounds; i++) {
      progress(`journal: ${i === 0 ? 'warm-up' : `round ${i} of ${rounds}`}`);
      await untilFlushed(watch, service.signal);
      process.kill(service.parts.flush, 'SIGSTOP');
      let rows: JournalRow[];
      try {
        const each = Math.ceil(backlog / pairs.length);
        await inParallel(pairs.length, 4, (chat) => {
          const pair = pairs[chat] as (typeof pairs)[number];
          return makeMessages(service, pair, pair.user.id, text, each);
        });
        rows = await waitingRows(watch, service.partitions);
        expect(
          rows.length >= backlog,
          `${rows.length} messages are waiting for Postgres instead of ${backlog}`,
        );
      } finally {
        process.kill(service.parts.flush, 'SIGCONT');
      }
      const own = await flusherTurn(service, watch, await watch.journalLength());
      await untilFlushed(watch, service.signal);
      const floor = await floorTurn(service, rows);
      if (i > 0) turns.push({ own, floor });
    }
    service.repin();
    const ratio = median(turns.map(({ own, floor }) => own.rate / floor.rate));
    const of = (side: 'own' | 'floor', field: keyof Turn) => median(turns.map((turn) => turn[side][field]));
    const shown = (side: 'own' | 'floor') =>
      `${Math.round(of(side, 'rate')).toLocaleString('en')}/s (${of(side, 'own').toFixed(1)} µs CPU per row, Postgres ${of(side, 'postgres').toFixed(1)} µs, Redis ${of(side, 'redis').toFixed(1)} µs)`;
    return [
      {
        key: 'journal beside a bare loop',
        proof: 'P4',
        what: `journal → Postgres, a backlog of ${backlog.toLocaleString('en')} messages, compared with a plain loop`,
        measured: `${ratio.toFixed(2)} ×: the flusher ${shown('own')}, a plain loop ${shown('floor')}`,
        value: known(ratio),
        goal: `${goal} ×`,
        met: ratio >= goal,
      },
    ];
  },
};

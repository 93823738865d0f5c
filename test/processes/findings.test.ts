import { expect, test } from 'vitest';
import { type DatabaseFacts, type Facts, findingsOf } from '../../src/processes/findings.js';

const server = { server: 'Redis at a', usedBytes: 10, maxBytes: 100, replicas: 1, appending: true };
const database: DatabaseFacts = {
  database: 'Postgres',
  ...{ connections: 10, connectionsMax: 100, quarantined: 0, failureDaysAhead: 3 },
  ...{ messageDaysAhead: 3, keptDays: { today: true, ahead: 3, overdue: 0 }, lost: null, rewriting: 0 },
};
/** Returns the facts about two databases. `change` replaces facts about the second database. */
const second = (change: Partial<DatabaseFacts>): Partial<Facts> => ({
  databases: [
    database,
    {
      ...database,
      database: 'Postgres (shard 2)',
      failureDaysAhead: null,
      messageDaysAhead: null,
      keptDays: null,
      ...change,
    },
  ],
});
const well: Facts = {
  engine: { note: undefined },
  warnings: [],
  servers: [server],
  journal: { waiting: 5, fullest: 0.01, flushedAgo: 100 },
  ...{ overdueWebhooks: 0, flushers: 2, nodes: 6, lostAgo: null, files: null, held: false },
  ...{ databases: [database], moving: null, failingWebhooks: [] },
};

test('`petrel doctor` reports nothing for a healthy installation', () => {
  expect(findingsOf(well)).toEqual([]);
});

/** Returns facts with one webhook that fails. */
const failing = (route: string | null = null): Partial<Facts> => ({
  failingWebhooks: [
    {
      ...{ username: 'shop_bot', route, host: 'shop.example:8443', since: 1_800_000_000 },
      error: 'Connection refused',
    },
  ],
});

test.each<[string, Partial<Facts>, boolean, RegExp, RegExp]>([
  ['the older engine', { engine: { note: 'GLIBC_2.38' } }, false, /older engine is used/, /image/],
  [
    'a warning',
    { warnings: ['the file is off (set appendonly yes)'] },
    false,
    /^the file is off$/,
    /^set appendonly yes$/,
  ],
  [
    'a file folder that cannot be written',
    { files: 'FILES_DIR /x cannot be written: EACCES' },
    true,
    /^FILES_DIR \/x/,
    /no front starts/,
  ],
  ['a drill', { held: true }, false, /nothing is sent/, /petrel resume/],
  [
    'high memory use',
    { servers: [{ ...server, usedBytes: 85 }] },
    false,
    /Redis at a uses 85 %/,
    /HOT_TTL_MS/,
  ],
  ['memory that is nearly full', { servers: [{ ...server, usedBytes: 96 }] }, true, /96 %/, /HOT_TTL_MS/],
  ['no memory limit', { servers: [{ ...server, maxBytes: 0 }] }, false, /no memory limit/, /maxmemory/],
  ['no replica', { servers: [{ ...server, replicas: 0 }] }, false, /no replica/, /add a replica/],
  ['a failing append-only file', { servers: [{ ...server, appending: false }] }, true, /append-only/, /disk/],
  ['no flusher', { flushers: 0 }, true, /no flusher/, /petrel flush/],
  [
    'a journal that is not flushed',
    { journal: { ...well.journal, flushedAgo: 31_000 } },
    true,
    /nothing was written/,
    /Postgres/,
  ],
  ['a journal that fills', { journal: { ...well.journal, fullest: 0.6 } }, false, /60 %/, /429/],
  ['a journal that is full', { journal: { ...well.journal, fullest: 0.95 } }, true, /95 %/, /429/],
  [
    'entries in quarantine',
    second({ quarantined: 3 }),
    true,
    /3 journal entries .*shard 2/,
    /table quarantine/,
  ],
  [
    'no partition for tomorrow’s messages',
    second({ messageDaysAhead: 0 }),
    true,
    /shard 2.* no partition for tomorrow’s messages/,
    /messages_default/,
  ],
  [
    'no partition for tomorrow’s failures',
    second({ failureDaysAhead: 0 }),
    true,
    /shard 2.* no partition for tomorrow’s delivery failures/,
    /delivery_failures_default/,
  ],
  [
    'no partition for tomorrow’s delivered updates',
    second({ keptDays: { today: true, ahead: 0, overdue: 0 } }),
    true,
    /shard 2.* no partition for tomorrow’s delivered updates/,
    /kept_updates_default/,
  ],
  [
    'no partition for today’s delivered updates',
    second({ keptDays: { today: false, ahead: 3, overdue: 0 } }),
    false,
    /shard 2.* no partition for today’s delivered updates/,
    /one by one/,
  ],
  [
    'expired partitions of delivered updates',
    second({ keptDays: { today: true, ahead: 3, overdue: 2 } }),
    false,
    /shard 2.* still has expired partitions of delivered updates: 2$/,
    /drop them/,
  ],
  ['no node', { nodes: 0 }, true, /no node/, /petrel front/],
  ['overdue webhooks', { overdueWebhooks: 2 }, true, /2 webhooks/, /petrel deliver/],
  [
    'nearly all connections in use',
    second({ connections: 95 }),
    true,
    /95 of 100 .*shard 2/,
    /POSTGRES_POOL/,
  ],
  [
    'a Postgres restored to an earlier time',
    second({ lost: { ago: 1_000, transactions: 121 } }),
    false,
    /^Postgres .shard 2. lost 121 committed transactions within the last week$/,
    /PetrelPostgresWentBack/,
  ],
  [
    'entities being written again',
    second({ lost: { ago: 1_000, transactions: 121 }, rewriting: 16 }),
    true,
    /16 partitions are still being rewritten/,
    /PetrelPostgresWentBack/,
  ],
  [
    'a running move',
    { moving: { what: 'partitions 3 are moving', paused: true, silentMs: 1_000 } },
    false,
    /are moving; their changes wait in Redis/,
    /petrel shards list/,
  ],
  [
    'an interrupted move',
    { moving: { what: 'partitions 3 are moving', paused: true, silentMs: 60_000 } },
    true,
    /no process continues the move; their/,
    /petrel shards list/,
  ],
  [
    'a failing webhook',
    failing(),
    false,
    /^the webhook of @shop_bot at shop.example:8443 .* since 2027-01-15 08:00 UTC: Connection refused$/,
    /ask the owner .* dead letters/,
  ],
  [
    'a failing webhook route',
    failing('pay'),
    false,
    /^the webhook route pay of @shop_bot at /,
    /check the receiver/,
  ],
  ['a recent loss', { lostAgo: 1_000 }, false, /lost changes/, /redis rebuild/],
])('doctor reports %s and what to do about it', (_, change, bad, what, todo) => {
  const [found, ...others] = findingsOf({ ...well, ...change });
  expect(others).toEqual([]);
  expect(found).toEqual({ bad, what: expect.stringMatching(what), todo: expect.stringMatching(todo) });
});

test('`petrel doctor` does not report idle journals, and lists problems before advice', () => {
  expect(findingsOf({ ...well, journal: { waiting: 0, fullest: 0, flushedAgo: null } })).toEqual([]);
  // After a restore, the next step for the operator is to start a flusher.
  expect(
    findingsOf({ ...well, ...second({ failureDaysAhead: 0 }), flushers: 0 }).map(({ bad }) => bad),
  ).toEqual([true, false]);
  const found = findingsOf({
    ...well,
    warnings: ['w'],
    lostAgo: 8 * 86_400_000,
    ...second({ quarantined: 1 }),
  });
  expect(found.map(({ bad }) => bad)).toEqual([true, false]);
});

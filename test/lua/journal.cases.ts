import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { base, direct, keys, partitionOf, record, run, seeds } from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;

const home = partitionOf(direct);
const chatName = `chat:${chatText(direct)}`;
const open = seeds.open(home);
const soon = Date.now() + 3_600_000;

const at = {
  meta: keys.meta(home),
  journal: keys.journal(home),
  lease: keys.flushLease(home),
  flushers: keys.flushers(),
};
const beat = (what: string, leaving: boolean, live: string[]): Case => ({
  ...{
    script: 'journal/heartbeat',
    what,
    keys: at,
    args: { id: 'me', stale_ms: '3000', leaving },
    changes: ['flushers'],
  },
  ...{ seeds: [seeds.hash(at.flushers, { me: 1, late: 1, here: soon })] },
  answer: ['ok', expect.toSatisfy((names) => (names as Buffer[]).map(String).sort().join() === live.join())],
});
const holder = (name: string) => seeds.text(at.lease, name, 3_000);
const settle: Case = {
  ...{
    script: 'journal/settle',
    what: 'sets a time to live on entities that have not changed since',
    answer: ['ok', 1, 2],
  },
  keys: {
    ...{ meta: at.meta, journal: at.journal },
    entities: [
      keys.message(direct, 1),
      keys.message(direct, 2),
      keys.message(direct, 3),
      keys.chat(direct),
      keys.chat({ ...direct, user: 9 }),
    ],
  },
  args: {
    after: '3-0',
    hot_ms: '60000',
    records: '3',
    brief: '0',
    versions: [`${base}`, `${base}`, `${base}`, `${base}`, `${base}`],
  },
  seeds: [
    seeds.stream(at.journal, 3),
    seeds.text(keys.message(direct, 1), record({ version: base })),
    seeds.text(keys.message(direct, 2), record({ version: base + 1 })),
    seeds.text(keys.message(direct, 3), 'no record'),
    seeds.chat(direct),
    seeds.chat({ ...direct, user: 9 }, { v: base + 1 }),
  ],
  changes: ['journal', 'meta', `msg:${chatText(direct)}:1`, chatName],
  after: async (client) => expect(await client.hget(at.meta, 'fl')).toBe('2'),
};
const recover = (what: string, more: More, args = {}): Case => ({
  ...{
    script: 'partition/recover',
    what,
    keys: at,
    args: {
      expected: run,
      incarnation: '96',
      post: '12',
      high_water: '100',
      bytes_max: '5000',
      installation: '',
      ...args,
    },
  },
  ...more,
});
const before = seeds.open(home, { run: 'before', ver: base + 5 });

const forget = (what: string, more: More, args = {}): Case => ({
  ...{
    script: 'partition/forget',
    what,
    keys: { ...at, lease: keys.forgetting(home), entities: [keys.message(direct, 1), keys.chat(direct)] },
    args: { expected: run, owner: 'me', ...args },
  },
  ...more,
});
const something = [seeds.text(keys.message(direct, 1), 'old'), seeds.chat(direct)];

const seal = (what: string, more: More): Case => ({
  ...{ script: 'partition/seal', what, keys: at, args: { seal: 'sealed text' } },
  ...more,
});
const sealed = seeds.open(home, { run: 'sealed', seal: 'sealed text' });
const unseal = (what: string, more: More, args = {}): Case => ({
  ...{
    script: 'partition/unseal',
    what,
    keys: at,
    args: {
      expected: run,
      seal: 'sealed text',
      high_water: '100',
      bytes_max: '5000',
      installation: '',
      ...args,
    },
  },
  ...more,
});

export const journalCases: Case[] = [
  seal('seals an open partition', { seeds: [open], answer: ['ok'], changes: ['meta'] }),
  seal('refuses to seal a partition with another run id', { seeds: [before], answer: ['stale_run'] }),
  unseal('opens a partition with its own seal', {
    seeds: [sealed],
    answer: ['ok'],
    changes: ['meta'],
    after: async (client) => expect(await client.hmget(at.meta, 'run', 'seal')).toEqual([run, null]),
  }),
  unseal('does not change an open partition', { seeds: [open], answer: ['ok'], changes: [] }),
  unseal('refuses another seal', { seeds: [sealed], answer: ['unsealed'] }, { seal: 'another' }),
  unseal('refuses a partition without a seal', { seeds: [before], answer: ['unsealed'] }),
  unseal(
    'refuses if the connection reaches another Redis',
    { seeds: [sealed], answer: ['moved'] },
    { run: 'third' },
  ),
  forget('removes the entities of a closed partition', {
    seeds: [before, ...something],
    answer: ['ok'],
    changes: ['forgetting', `msg:${chatText(direct)}:1`, chatName],
    after: async (client) => expect(await client.exists(keys.message(direct, 1), keys.chat(direct))).toBe(0),
  }),
  forget('refuses an open partition', { seeds: [open, ...something], answer: ['open'] }),
  forget('refuses while another process removes entities', {
    seeds: [before, ...something, seeds.text(keys.forgetting(home), 'you')],
    answer: ['taken'],
  }),
  forget(
    'refuses if the connection reaches another Redis',
    { seeds: [before, ...something], answer: ['moved'] },
    { run: 'third' },
  ),
  beat('lists a live flusher', false, ['here', 'me']),
  beat('removes a flusher that leaves', true, ['here']),
  {
    script: 'journal/lease',
    what: 'grants a free lease',
    keys: at,
    args: { owner: 'me', ms: '3000' },
    answer: ['ok'],
    changes: ['flush_lease'],
  },
  {
    script: 'journal/lease',
    what: 'renews its own lease',
    keys: at,
    args: { owner: 'me', ms: '3000' },
    seeds: [holder('me')],
    answer: ['ok'],
    changes: [],
  },
  {
    script: 'journal/lease',
    what: 'refuses a lease held by another flusher',
    keys: at,
    args: { owner: 'me', ms: '3000' },
    seeds: [holder('you')],
    answer: ['taken'],
  },
  {
    script: 'journal/release',
    what: 'releases its own lease',
    keys: at,
    args: { owner: 'me' },
    seeds: [holder('me')],
    answer: ['ok'],
    changes: ['flush_lease'],
  },
  {
    script: 'journal/release',
    what: 'keeps a lease held by another flusher',
    keys: at,
    args: { owner: 'me' },
    seeds: [holder('you')],
    answer: ['ok'],
    changes: [],
  },
  settle,
  {
    ...settle,
    what: 'sets the hot time as time to live, on tombstones too',
    args: { ...settle.args, hot_ms: '3600000' },
    after: async (client) => {
      expect(await client.pttl(keys.message(direct, 1))).toBeGreaterThan(limits.hot_ttl_ms_min);
      expect(await client.pttl(keys.chat(direct))).toBeGreaterThan(limits.hot_ttl_ms_min);
    },
  },
  {
    script: 'journal/state',
    what: 'describes a partition',
    keys: at,
    args: {},
    seeds: [open, seeds.stream(at.journal, 2)],
    answer: ['ok', 2, '1', `${base}`, run, '100', '0', '5000'],
    changes: [],
  },
  {
    script: 'journal/state',
    what: 'describes a partition that was never opened',
    keys: at,
    args: {},
    answer: ['ok', 0, null, '0', null, '0', '0', '0'],
    changes: [],
  },
  {
    script: 'journal/progress',
    what: 'returns the oldest and the newest entry',
    keys: at,
    args: {},
    seeds: [open, seeds.stream(at.journal, 2)],
    answer: ['ok', run, '1', '2'],
    changes: [],
  },
  {
    script: 'journal/progress',
    what: 'returns no entries of an empty journal',
    keys: at,
    args: {},
    seeds: [open],
    answer: ['ok', run, null, null],
    changes: [],
  },
  {
    script: 'journal/progress',
    what: 'refuses a different run id',
    keys: at,
    args: { run: 'other' },
    seeds: [open],
    answer: ['stale_run'],
    changes: [],
  },
  {
    script: 'journal/tell',
    what: 'publishes a hint and stores nothing',
    keys: { channel: keys.flushed() },
    args: { hint: '0 1' },
    answer: ['ok'],
  },
  recover('raises the incarnation', {
    seeds: [before],
    answer: ['ok'],
    changes: ['meta'],
    after: async (client) =>
      expect(await client.hgetall(at.meta)).toEqual({
        run,
        ver: `${96 * limits.versions_per_incarnation}`,
        hw: '100',
        hwb: '5000',
        post: '12',
      }),
  }),
  recover('does not change an open partition', { seeds: [open], answer: ['ok'], changes: [] }),
  recover(
    'refuses an incarnation behind the version counter',
    { seeds: [before], answer: ['behind', `${base + 5}`] },
    { incarnation: '95' },
  ),
  recover('refuses an incarnation behind the last id of the journal', {
    seeds: [(client) => client.xadd(at.journal, `${97 * limits.versions_per_incarnation}-0`, 'k', 'x')],
    answer: ['behind', `${97 * limits.versions_per_incarnation}`],
  }),
  recover(
    'refuses if the connection reaches another Redis',
    { seeds: [before], answer: ['moved'] },
    { run: 'third' },
  ),
  {
    script: 'partition/raise',
    what: 'raises the incarnation of an open partition',
    keys: at,
    args: { incarnation: '97' },
    seeds: [open],
    answer: ['ok'],
    changes: ['meta'],
    after: async (client) =>
      expect(await client.hmget(at.meta, 'run', 'ver')).toEqual([
        run,
        `${97 * limits.versions_per_incarnation}`,
      ]),
  },
  {
    script: 'partition/raise',
    what: 'refuses an incarnation below the incarnation of the partition',
    keys: at,
    args: { incarnation: '2' },
    seeds: [open],
    answer: ['behind', `${base}`],
  },
];

import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { pack, unpack } from '../../src/store/core/codec.js';
import type { Case } from './cases.js';
import { bot, direct, incarnation, keys, partitionOf, seeds } from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;

const home = partitionOf(direct);
const open = seeds.open(home);

const copy = {
  meta: keys.meta(home),
  record: keys.bot(bot),
  ticket: keys.ticket(keys.bot(bot)),
  channel: keys.userChannel(bot),
};
const [copyName, copyTicket] = [`bot:${bot}`, `bot:${bot}:ticket`];
const stored = (version: number, inc = incarnation) =>
  seeds.text(copy.record, pack([version, inc, 'old']), 60_000);
const absent = limits.absent_ttl_ms;
const copyHeld = seeds.text(copy.ticket, 'T', 5_000);
const write = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'control/write', what, keys: copy },
  args: {
    token: `${incarnation} T`,
    refresh: false,
    version: `${2 ** 52}`,
    fields: pack('new'),
    count: '3',
    ttl_ms: '60000',
    ...args,
  },
  ...more,
});
const refresh = { refresh: true };
const forget = (what: string, more: More): Case => ({
  ...{ script: 'control/forget', what, keys: { entries: [copy.record, copy.ticket] }, args: {} },
  ...more,
});
export const controlCases: Case[] = [
  forget('removes a copy', { seeds: [stored(1)], answer: ['ok', 1], changes: [copyName] }),
  forget('invalidates a fill in flight', { seeds: [copyHeld], answer: ['ok', 1], changes: [copyTicket] }),
  forget('succeeds if there is no copy', { answer: ['ok', 0] }),
  write('stores a fill with its ticket', {
    seeds: [open, copyHeld],
    answer: ['ok', 1],
    changes: [copyName, copyTicket],
    after: async (client) =>
      expect(unpack((await client.getBuffer(copy.record)) as Buffer)).toEqual([2 ** 52, incarnation, 'new']),
  }),
  write(
    'stores for one minute that a record does not exist',
    {
      seeds: [open, copyHeld],
      answer: ['ok', 1],
      changes: [copyName, copyTicket],
      after: async (client) => expect(await client.pttl(copy.record)).toBeLessThanOrEqual(absent),
    },
    { version: '0', ttl_ms: `${10 * absent}` },
  ),
  write('ignores a fill without a ticket', { seeds: [open], answer: ['ok', 0], changes: [] }),
  write(
    'ignores a fill whose ticket was read under an earlier incarnation',
    { seeds: [open, copyHeld], answer: ['ok', 0], changes: [] },
    { token: `${incarnation - 1} T` },
  ),
  write('ignores a fill if a copy is present', {
    seeds: [open, copyHeld, stored(1)],
    answer: ['ok', 0],
    changes: [],
  }),
  write('replaces a copy of an older incarnation by a fill', {
    seeds: [open, copyHeld, stored(1, 94)],
    answer: ['ok', 1],
    changes: [copyName, copyTicket],
  }),
  write(
    'replaces an older copy by a refresh',
    { seeds: [open, stored(1), copyHeld], answer: ['ok', 1], changes: [copyName, copyTicket] },
    { ...refresh, token: '' },
  ),
  write(
    'keeps a newer copy when a refresh arrives',
    { seeds: [open, stored(9), copyHeld], answer: ['ok', 0], changes: [copyTicket] },
    { ...refresh, version: '9' },
  ),
  write(
    'stores a refresh with its ticket if there is no copy',
    { seeds: [open, copyHeld], answer: ['ok', 1], changes: [copyName, copyTicket] },
    refresh,
  ),
  write(
    'ignores a refresh without a ticket if there is no copy',
    { seeds: [open], answer: ['ok', 0], changes: [] },
    { ...refresh, token: '' },
  ),
  write('refuses a different run id', { seeds: [open, copyHeld], answer: ['stale_run'] }, { run: 'other' }),
  {
    script: 'control/read',
    what: 'reads a copy',
    keys: copy,
    args: { token: 'T', ttl_ms: '90000' },
    seeds: [open, stored(1)],
    answer: ['ok', pack([1, incarnation, 'old']).toString('latin1')],
    changes: [],
  },
  {
    script: 'control/read',
    what: 'does not extend the stored absence of a record when it is read',
    keys: copy,
    args: { token: 'T', ttl_ms: `${10 * absent}` },
    seeds: [open, stored(0)],
    answer: ['ok', pack([0, incarnation, 'old']).toString('latin1')],
    changes: [],
    after: async (client) => expect(await client.pttl(copy.record)).toBeLessThanOrEqual(absent),
  },
  {
    script: 'control/read',
    what: 'reports an absent copy as missing',
    keys: copy,
    args: { token: 'T', ttl_ms: '90000' },
    seeds: [open],
    answer: ['missing', `${incarnation} T`],
  },
  {
    script: 'control/read',
    what: 'reports a copy of an older incarnation as missing',
    keys: copy,
    args: { token: 'T', ttl_ms: '1' },
    seeds: [open, stored(1, 94)],
    answer: ['missing', `${incarnation} T`],
  },
  {
    script: 'control/read',
    what: 'refuses a different run id',
    keys: copy,
    args: { token: 'T', ttl_ms: '1', run: 'other' },
    seeds: [open, stored(1)],
    answer: ['stale_run'],
  },
];

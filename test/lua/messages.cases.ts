import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { chatText } from '../../src/store/core/keys.js';
import type { Case } from './cases.js';
import { id } from './message_world.js';
import { base, direct, incarnation, issued, keys, partitionOf, record, seeds } from './world.js';

const fillKeys = {
  meta: keys.meta(partitionOf(direct)),
  message: keys.message(direct, id),
  ticket: keys.ticket(keys.message(direct, id)),
};
const open = seeds.open(partitionOf(direct));
const fillArgs = { token: issued('T'), record: record(), ttl_ms: '60000' };
const rangeKeys = {
  meta: keys.meta(partitionOf(direct)),
  chat: keys.chat(direct),
  message: keys.messages(direct),
};

export const messageCases: Case[] = [
  {
    ...{ script: 'messages/fill', what: 'stores a message with its ticket', keys: fillKeys, args: fillArgs },
    ...{ seeds: [open, seeds.text(fillKeys.ticket, 'T', 5_000)], answer: ['ok', 1] },
    changes: [`msg:${chatText(direct)}:7`, `msg:${chatText(direct)}:7:ticket`],
    after: async (client) => expect(await client.pttl(fillKeys.message)).toBeGreaterThan(50_000),
  },
  {
    script: 'messages/fill',
    what: 'stores nothing without a ticket',
    keys: fillKeys,
    args: fillArgs,
    seeds: [open],
    answer: ['ok', 0],
    changes: [],
  },
  {
    script: 'messages/fill',
    what: 'stores nothing under a ticket of an earlier incarnation',
    keys: fillKeys,
    args: { ...fillArgs, token: issued('T', incarnation - 1) },
    seeds: [open, seeds.text(fillKeys.ticket, 'T', 5_000)],
    answer: ['ok', 0],
    changes: [],
  },
  {
    script: 'messages/fill',
    what: 'refuses a different run id',
    keys: fillKeys,
    args: { ...fillArgs, run: 'other' },
    seeds: [open, seeds.text(fillKeys.ticket, 'T', 5_000)],
    answer: ['stale_run'],
    changes: [],
  },
  {
    ...{
      script: 'messages/fill',
      what: 'stores nothing under the ticket of another call',
      keys: fillKeys,
      args: fillArgs,
      answer: ['ok', 0],
    },
    ...{ seeds: [open, seeds.text(fillKeys.ticket, 'U', 5_000)], changes: [] },
  },
  {
    ...{
      script: 'messages/fill',
      what: 'keeps a message that is present',
      keys: fillKeys,
      args: fillArgs,
      answer: ['ok', 0],
      changes: [],
    },
    seeds: [open, seeds.text(fillKeys.ticket, 'T', 5_000), seeds.message(direct, id)],
  },
  {
    ...{
      script: 'messages/read_range',
      what: 'returns rows with a gap for a cold message',
      keys: rangeKeys,
      args: { before: '0', limit: '2', bytes: '1000' },
    },
    ...{
      seeds: [
        seeds.open(partitionOf(direct)),
        seeds.chat(direct),
        seeds.text(keys.message(direct, 6), 'six'),
      ],
      answer: ['ok', 7, expect.anything(), 7, [null, Buffer.from('six')]],
    },
    changes: [],
  },
  {
    script: 'messages/read_some',
    what: 'returns messages in the order of the ids, with a gap for a cold one',
    keys: { meta: keys.meta(partitionOf(direct)), message: keys.messages(direct) },
    args: { bytes: '0', ids: ['7', '6', '5'] },
    seeds: [
      seeds.open(partitionOf(direct)),
      seeds.text(keys.message(direct, 5), 'five'),
      seeds.text(keys.message(direct, 7), 'seven'),
    ],
    answer: ['ok', [Buffer.from('seven'), null, Buffer.from('five')]],
    changes: [],
  },
  {
    script: 'messages/read_some',
    what: 'returns the first bytes of each record, with a gap for a cold one',
    keys: { meta: keys.meta(partitionOf(direct)), message: keys.messages(direct) },
    args: { bytes: `${limits.message_head_bytes_max}`, ids: ['7', '6', '5'] },
    seeds: [
      seeds.open(partitionOf(direct)),
      seeds.text(keys.message(direct, 5), 'x'.repeat(limits.message_head_bytes_max + 1)),
      seeds.text(keys.message(direct, 7), 'seven'),
    ],
    answer: ['ok', [Buffer.from('seven'), null, Buffer.from('x'.repeat(limits.message_head_bytes_max))]],
    changes: [],
  },
  {
    script: 'messages/read_range',
    what: 'returns rows until their size exceeds the limit in bytes',
    keys: rangeKeys,
    args: { before: '0', limit: '3', bytes: '3' },
    seeds: [
      seeds.open(partitionOf(direct)),
      seeds.chat(direct),
      seeds.text(keys.message(direct, 7), 'of 7'),
      seeds.text(keys.message(direct, 6), 'of 6'),
    ],
    answer: ['ok', 7, expect.anything(), 7, [Buffer.from('of 7')]],
  },
  {
    script: 'messages/read_range',
    what: 'returns the version up to which Postgres has everything',
    keys: rangeKeys,
    args: { before: '0', limit: '1', bytes: '3' },
    seeds: [seeds.open(partitionOf(direct), { ver: base + 9, fl: base + 3 }), seeds.chat(direct)],
    answer: ['ok', 7, expect.anything(), 7, [null], base + 3],
    changes: [],
  },
  {
    script: 'messages/read_range',
    what: 'returns no version of a former incarnation',
    keys: rangeKeys,
    args: { before: '0', limit: '1', bytes: '3' },
    seeds: [
      seeds.open(partitionOf(direct), { ver: base + 9, fl: base - limits.versions_per_incarnation }),
      seeds.chat(direct),
    ],
    answer: ['ok', 7, expect.anything(), 7, [null]],
    changes: [],
  },
  {
    script: 'messages/read_range',
    what: 'reports a cold chat as missing',
    keys: rangeKeys,
    args: { before: '0', limit: '2', bytes: '1000' },
    seeds: [seeds.open(partitionOf(direct))],
    answer: ['chat_missing'],
  },
  {
    script: 'messages/read_range',
    what: 'refuses a different run id',
    keys: rangeKeys,
    args: { run: 'other', before: '0', limit: '2', bytes: '1000' },
    seeds: [seeds.open(partitionOf(direct)), seeds.chat(direct)],
    answer: ['stale_run'],
  },
  {
    script: 'messages/read_some',
    what: 'refuses a different run id',
    keys: { meta: keys.meta(partitionOf(direct)), message: keys.messages(direct) },
    args: { run: 'other', bytes: '0', ids: ['5'] },
    seeds: [seeds.open(partitionOf(direct))],
    answer: ['stale_run'],
  },
];

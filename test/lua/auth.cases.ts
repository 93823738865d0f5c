import { expect } from 'vitest';
import type { Case } from './cases.js';
import { incarnation, keys, seeds } from './world.js';

type More = Partial<Case> & Pick<Case, 'answer'>;

const auth = {
  meta: keys.meta(0),
  nodes: keys.authNodes(),
  revoked: keys.authRevoked(),
  channel: keys.authChannel(),
};
const known = seeds.open(0);
const nodes = (fields = {}) => seeds.hash(auth.nodes, { incarnation, epoch: 2, ...fields });
const log = seeds.stream(auth.revoked, 2);
const renew = (what: string, { seeds: more = [], ...rest }: More, args = {}): Case => ({
  ...{ script: 'auth/renew', what, keys: auth },
  args: { node: 'n', known: String(incarnation), acked: '2', lease_ms: '1000', ...args },
  seeds: [known, ...more],
  ...rest,
});
const pending = (what: string, fields: object, late: string[], gone: string[] = []): Case => ({
  ...{
    script: 'auth/pending',
    what,
    keys: auth,
    args: { epoch: '2', incarnation: String(incarnation), gone },
    seeds: [known, nodes(fields)],
    answer: ['ok', late.length / 2, late.map((text) => Buffer.from(text))],
    changes: gone.length > 0 && late.length === 0 ? ['auth_nodes'] : [],
  },
});
const soon = Date.now() + 60_000;
const everything = [Buffer.from('*')];

const guesses = keys.guesses(1, '192.0.2.1');
const guess = (what: string, more: More): Case => ({
  ...{ script: 'auth/guess', what, keys: { guesses }, args: { burst: '2', interval_ms: '60000' } },
  ...more,
});

export const authCases: Case[] = [
  guess('accepts the first guess of an address', {
    answer: ['ok', 0],
    changes: ['guesses:192.0.2.1'],
    after: async (client) => expect(await client.pttl(guesses)).toBeGreaterThan(50_000),
  }),
  guess('accepts the last guess of a burst', {
    seeds: [seeds.text(guesses, String(Date.now() + 59_000))],
    answer: ['ok', 0],
    changes: ['guesses:192.0.2.1'],
  }),
  guess('refuses one more guess without extending the wait', {
    seeds: [seeds.text(guesses, String(Date.now() + 3_600_000))],
    answer: ['ok'],
  }),
  renew('reports nothing if nothing was revoked', {
    seeds: [nodes(), log],
    answer: ['ok', incarnation, 2, []],
    changes: ['auth_nodes'],
  }),
  renew(
    'reports a token revoked since the last renewal',
    { seeds: [nodes(), log], answer: ['ok', incarnation, 2, [Buffer.from('x')]], changes: ['auth_nodes'] },
    { acked: '1' },
  ),
  renew(
    'reports everything as revoked if the log does not reach back',
    { seeds: [nodes()], answer: ['ok', incarnation, 2, everything], changes: ['auth_nodes'] },
    { acked: '1' },
  ),
  renew(
    'reports everything as revoked after an acknowledged epoch was lost',
    {
      seeds: [nodes()],
      answer: ['ok', incarnation, 2, everything],
      changes: ['auth_nodes'],
      after: async (client) => expect(await client.hget(auth.nodes, 'n')).toMatch(/^0 /),
    },
    { acked: '3' },
  ),
  renew(
    'reports everything as revoked under another incarnation, even for the same epoch',
    { seeds: [nodes()], answer: ['ok', incarnation, 2, everything], changes: ['auth_nodes'] },
    { known: String(incarnation - 1) },
  ),
  renew(
    'reports everything as revoked at the first renewal of a new incarnation',
    {
      seeds: [nodes({ incarnation: incarnation - 1 }), log],
      answer: ['ok', incarnation, 2, everything],
      changes: ['auth_nodes', 'auth_revoked'],
    },
    { known: String(incarnation - 1) },
  ),
  renew(
    'reports everything as revoked on an empty Redis',
    { answer: ['ok', incarnation, 0, everything], changes: ['auth_nodes'] },
    { known: '0' },
  ),
  {
    ...{ script: 'auth/renew', what: 'refuses while the incarnation is unknown', keys: auth },
    args: { node: 'n', known: '0', acked: '0', lease_ms: '1000' },
    answer: ['stale_run'],
  },
  {
    ...{ script: 'auth/revoke', what: 'refuses while the incarnation is unknown', keys: auth },
    args: { subjects: 'bot:1 user:2' },
    answer: ['stale_run'],
  },
  {
    ...{
      script: 'auth/revoke',
      what: 'raises the epoch',
      keys: auth,
      args: { subjects: 'bot:1 user:2' },
    },
    ...{
      seeds: [known, nodes(), log],
      answer: ['ok', incarnation, 3],
      changes: ['auth_nodes', 'auth_revoked'],
    },
  },
  {
    ...{
      script: 'auth/revoke',
      what: 'clears the log at the first revocation of a new incarnation',
      keys: auth,
      args: { subjects: 'bot:1 user:2' },
    },
    ...{
      seeds: [known, nodes({ incarnation: incarnation - 1 }), log],
      answer: ['ok', incarnation, 3],
      changes: ['auth_nodes', 'auth_revoked'],
    },
    after: async (client) => expect(await client.xlen(auth.revoked)).toBe(1),
  },
  {
    ...{ script: 'auth/pending', what: 'refuses while the incarnation is unknown', keys: auth },
    args: { epoch: '2', incarnation: String(incarnation), gone: [] },
    answer: ['stale_run'],
  },
  {
    ...{ script: 'auth/pending', what: 'counts lost nodes under a later incarnation', keys: auth },
    args: { epoch: '2', incarnation: String(incarnation - 1), gone: [] },
    seeds: [known, nodes()],
    answer: ['ok', 1, []],
  },
  pending('counts a node that has not acknowledged', { a: `2 ${soon}`, b: `1 ${soon}` }, ['b', `1 ${soon}`]),
  pending('counts a node whose lease has ended by the clock of Redis', { b: '1 1000' }, ['b', '1 1000']),
  pending('removes a node that did not renew its lease', { b: '1 1000' }, [], ['b', '1 1000']),
  pending('keeps a node that has renewed its lease', { b: '1 2000' }, ['b', '1 2000'], ['b', '1 1000']),
  {
    script: 'auth/leave',
    what: 'removes a node',
    keys: auth,
    args: { node: 'a' },
    seeds: [nodes({ a: `2 ${soon}` })],
    answer: ['ok'],
    changes: ['auth_nodes'],
  },
];

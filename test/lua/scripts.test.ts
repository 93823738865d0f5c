/**
 * Runs every script on a real Redis in cluster mode, for every status that the script can return. If a call is refused,
 * it may change only tickets. A ticket permits a later call to load a record from Postgres.
 */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CombinedForm, Script } from '../../src/redis/scripts/contract.js';
import { originOf, redisRecords } from '../../src/store/core/redis_state.js';
import { sampled } from '../support/tiers.js';
import { authCases } from './auth.cases.js';
import { boundCases } from './bounds.cases.js';
import type { Case } from './cases.js';
import { chatCases } from './chats.cases.js';
import { controlCases } from './control.cases.js';
import { historyCases } from './history.cases.js';
import { historyReplayCases } from './history_replays.cases.js';
import { idempotencyCases } from './idempotency.cases.js';
import { inlineCases } from './inline.cases.js';
import { journalCases } from './journal.cases.js';
import { limitCases } from './limits.cases.js';
import { linkPreviewCases } from './link_previews.cases.js';
import { messageBatchCases } from './message_batches.cases.js';
import { editCases } from './message_edits.cases.js';
import { removalCases } from './message_removals.cases.js';
import { sendCases } from './message_sends.cases.js';
import { messageCases } from './messages.cases.js';
import { personDraftCases } from './person_drafts.cases.js';
import { pinCases } from './pins.cases.js';
import { postCountCases } from './post_counts.cases.js';
import { reactionCases } from './post_reactions.cases.js';
import { postCases } from './posts.cases.js';
import { presenceCases } from './presence.cases.js';
import { consumerCases } from './update_consumers.cases.js';
import { pollCases } from './update_polls.cases.js';
import { pressCases } from './update_presses.cases.js';
import { updateCases } from './updates.cases.js';
import { voteCases } from './votes.cases.js';
import { webhookReplayCases } from './webhook_replays.cases.js';
import { webhookRouteCases } from './webhook_routes.cases.js';
import { stepCases } from './webhook_steps.cases.js';
import { switchCases } from './webhook_switches.cases.js';
import { webhookCases } from './webhooks.cases.js';
import {
  callCombined,
  callScript,
  changed,
  type Dumped,
  dump,
  keys,
  scripts,
  startClusterNode,
} from './world.js';
import { writeAccessCases } from './write_access.cases.js';

let node: Awaited<ReturnType<typeof startClusterNode>>;
let client: Redis;
const cases: readonly Case[] = [
  ...messageCases,
  ...sendCases,
  ...editCases,
  ...removalCases,
  ...messageBatchCases,
  ...pinCases,
  ...updateCases,
  ...pollCases,
  ...consumerCases,
  ...pressCases,
  ...authCases,
  ...chatCases,
  ...controlCases,
  ...journalCases,
  ...historyCases,
  ...limitCases,
  ...linkPreviewCases,
  ...personDraftCases,
  ...presenceCases,
  ...idempotencyCases,
  ...reactionCases,
  ...postCases,
  ...webhookCases,
  ...stepCases,
  ...switchCases,
  ...postCountCases,
  ...voteCases,
  ...inlineCases,
  ...historyReplayCases,
  ...webhookReplayCases,
  ...webhookRouteCases,
  ...writeAccessCases,
  ...boundCases,
];
beforeAll(async () => {
  node = await startClusterNode();
  client = node.client;
});
afterAll(() => node.stop());

/** A script may return a number as text. Converts such a text if a number is expected. */
const readLike = (expected: readonly unknown[]) => (value: unknown, i: number) =>
  typeof expected[i] === 'number' && typeof value === 'string' ? Number(value) : value;

describe.each([...scripts.keys()])('%s', (name) => {
  const script = scripts.get(name) as Script;
  const own = cases.filter((each) => each.script === name);

  const check = async (each: Case, call: () => Promise<unknown[]>) => {
    await client.flushall();
    for (const seed of each.seeds ?? []) await seed(client);
    const before = await dump(client);
    const answer = await call();
    expect(answer.slice(0, each.answer.length).map(readLike(each.answer))).toEqual(each.answer);
    const declared = answer[0] === 'ok' ? script.ok : script.errors.get(String(answer[0]));
    // A reply may be shorter than declared, because Redis cuts off a null at its end.
    expect(answer.length - 1).toBeLessThanOrEqual(declared?.length ?? -1);
    const after = await dump(client);
    const differing = changed(before, after);
    if (answer[0] === 'ok') expect(differing).toEqual([...(each.changes ?? [])].sort());
    else expect(differing.filter((key) => !key.endsWith(':ticket'))).toEqual([]);
    await each.after?.(client);
    for (const [kind, fields] of recordsIn(each.after ? await dump(client) : after))
      for (const field of fields) {
        used.add(`${kind} ${field}`);
        expect(originOf(kind, field), `${kind} ${field} in redis_state.ts`).toBeDefined();
      }
  };

  test.each(own.map((each) => [each.what, each] as const))('%s', (_, each) =>
    check(each, () => callScript(client, script, each.keys, each.args)),
  );

  const { combined } = script;
  const combinedCases = combined === null ? [] : sampled(own, 1);
  test.each(combinedCases.map((each) => [each.what, each] as const))('in the combined form: %s', (_, each) =>
    check(each, async () => {
      const form = { ...script, combined: combined as CombinedForm };
      const [answer, ...others] = await callCombined(client, form, [each]);
      expect(others).toEqual([]);
      return answer as unknown[];
    }),
  );

  test('the test cases of a script return every status that its header declares', () => {
    const seen = new Set(own.map(({ answer }) => answer[0]));
    expect([...seen].sort()).toEqual(['ok', ...script.errors.keys()].sort());
  });

  test('a Lua script has at most nine arguments', () => {
    expect(script.args.length).toBeLessThanOrEqual(9);
  });
});

/**
 * Groups the keys of a dump by kind of record. For each kind, returns the names of the hash fields, or '' for a key
 * that is no hash. Leaves out tickets, because they are not records.
 */
function recordsIn(dumped: ReadonlyMap<string, Dumped>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [key, { type, values }] of dumped) {
    if (key.endsWith(':ticket')) continue;
    const kind = key.slice(key.indexOf('}') + 2).split(':')[0] as string;
    const fields = type === 'hash' ? Object.keys(values[0] as object) : [''];
    found.set(kind, [...(found.get(kind) ?? []), ...fields]);
  }
  return found;
}
const used = new Set<string>();

test('the table of records contains every Redis record that a script or a key builder uses', () => {
  const kindOf = (key: string) => key.slice(key.indexOf('}') + 2).split(':')[0] as string;
  const channel = (name: string) => name.startsWith('on_');
  const listed = new Set(redisRecords.map(({ kind }) => kind));
  const spelled = [...scripts.values()].flatMap((script) =>
    script.keys.filter(({ pattern }) => !/[…]|}:</.test(pattern)).map(({ pattern }) => kindOf(pattern)),
  );
  const built = readFileSync(new URL('../../src/store/core/keys.ts', import.meta.url), 'utf8').matchAll(
    /\)\}:([a-z_]+)/g,
  );
  const named = new Set(
    [...spelled, ...[...built].map(([, kind]) => kind as string)].filter((name) => !channel(name)),
  );
  expect([...named].filter((name) => !listed.has(name))).toEqual([]);
  expect([...listed].filter((name) => !named.has(name) && name !== 'msg')).toEqual([]);
});

test('one script argument can contain all polls that may wait on a node', async () => {
  await client.flushall();
  const polls = Array.from({ length: 20_000 }, (_, i) => [`${i}`, 'p']).flat();
  const at = { state: keys.queueStateRoot(0), queue: keys.queueRoot(0) };
  const [status, wake] = await callScript(client, scripts.get('updates/peek') as Script, at, { polls });
  expect([status, (wake as unknown[]).length]).toEqual(['ok', 20_000]);
});

test('the Redis of the tests refuses scripts that access another slot', async () => {
  const source = "#!lua\nredis.call('GET', KEYS[1]) return redis.call('GET', '{other}:key')";
  await expect(client.eval(source, 1, '{one}:key')).rejects.toThrow(
    /non local key|do not hash to the same slot/,
  );
});

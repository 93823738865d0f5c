import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { makeUser, startCluster, type TestCluster, type TestNode } from '../support/store.js';

let cluster: TestCluster;
let [one, other] = [] as unknown as [TestNode, TestNode];

beforeAll(async () => {
  cluster = await startCluster();
  [one, other] = [await cluster.node(), await cluster.node()];
  await Promise.all([one, other].map(({ store }) => store.auth.start()));
});
afterAll(() => cluster?.close());

const accepts = async (token: string) =>
  Promise.all([one, other].map(async ({ store }) => (await store.auth.user(token)) !== null));

const setUsed = (id: number, daysAgo: number) => one.db.run`
  update user_tokens set created_at = now() - interval '1 year', last_used_on = current_date - ${daysAgo}::int
  where id = ${id}`;

test('every node accepts a session until the session is ended, and refuses the session afterwards', async () => {
  const { id, token } = await makeUser(one);
  const first = await one.store.sessions.start(id, 'Firefox on Linux');
  const second = await other.store.sessions.start(id, '');
  for (const each of [token, first, second]) expect(await accepts(each)).toEqual([true, true]);
  const listed = await other.store.sessions.list(id, first);
  expect(listed.map(({ agent, is_current }) => [agent, is_current])).toEqual([
    ['', false],
    ['Firefox on Linux', true],
  ]);
  await one.store.sessions.end(id, listed[0]?.id as number);
  expect(await accepts(second)).toEqual([false, false]);
  for (const each of [token, first]) expect(await accepts(each)).toEqual([true, true]);
});

test('a person cannot end sessions of other people, and cannot end tokens as sessions', async () => {
  const [ann, bob] = [await makeUser(one), await makeUser(one)];
  const ofBob = await one.store.sessions.start(bob.id, '');
  const [session] = await one.store.sessions.list(bob.id, '');
  const [named] = await one.store.users.tokens(ann.id, 0, 1);
  for (const id of [session?.id, named?.id])
    await expect(one.store.sessions.end(ann.id, id as number)).rejects.toMatchObject({
      kind: 'session_not_found',
    });
  await one.store.sessions.endOwn(ann.id, ann.token);
  await one.store.sessions.endOwn(ann.id, ofBob);
  for (const each of [ann.token, bob.token, ofBob]) expect(await accepts(each)).toEqual([true, true]);
});

test('a caller can end the current session, or all other sessions of the same person', async () => {
  const { id, token } = await makeUser(one);
  const tokens: string[] = [];
  for (let i = 0; i < 4; i++) tokens.push(await one.store.sessions.start(id, `${i}`));
  const [first, second, ...others] = tokens as [string, string, ...string[]];
  await one.store.sessions.endOwn(id, first);
  expect(await accepts(first)).toEqual([false, false]);
  expect(await other.store.sessions.endOthers(id, second)).toBe(2);
  for (const each of others) expect(await accepts(each)).toEqual([false, false]);
  for (const each of [token, second]) expect(await accepts(each)).toEqual([true, true]);
  expect(await other.store.sessions.endOthers(id, second)).toBe(0);
  expect(await one.store.sessions.endOthers(id, token)).toBe(1);
  expect(await accepts(second)).toEqual([false, false]);
});

test('a sign-in above the limit ends the session that has been unused for the longest time', async () => {
  const { id, token } = await makeUser(one);
  const tokens: string[] = [];
  for (let i = 0; i < limits.user_sessions_max; i++) {
    const made = await one.store.sessions.start(id, '');
    const [newest] = await one.store.sessions.list(id, made);
    await setUsed(newest?.id as number, i === 7 ? 40 : i);
    tokens.push(made);
  }
  expect(await accepts(tokens[7] as string)).toEqual([true, true]);
  const newest = await other.store.sessions.start(id, '');
  expect(await accepts(tokens[7] as string)).toEqual([false, false]);
  for (const each of [token, newest, tokens[8] as string]) expect(await accepts(each)).toEqual([true, true]);
  // The session that has been unused for the longest time ends. The newest session stays, although nobody has used it
  // yet.
  await other.store.sessions.start(id, '');
  expect(await accepts(newest)).toEqual([true, true]);
  expect(await accepts(tokens.at(-1) as string)).toEqual([false, false]);
  expect(await one.store.sessions.list(id, '')).toHaveLength(limits.user_sessions_max);
  // Named tokens do not count as sessions. They have a separate limit.
  await one.store.users.addToken(id, 'laptop');
  expect(await one.store.users.tokens(id, 0, 100)).toHaveLength(2);
});

test('a session ends when it has been unused for more than the given number of days, and named tokens stay valid', async () => {
  const { id, token } = await makeUser(one);
  const start = async (daysAgo: number | null) => {
    const made = await one.store.sessions.start(id, '');
    const [newest] = await one.store.sessions.list(id, made);
    if (daysAgo !== null) await setUsed(newest?.id as number, daysAgo);
    return made;
  };
  const [unused, used, fresh] = [await start(31), await start(30), await start(null)];
  await one.db.run`
    update user_tokens set created_at = now() - interval '1 year', last_used_on = null
    where user_id = ${id} and agent is null`;
  for (const each of [unused, used, fresh, token]) expect(await accepts(each)).toEqual([true, true]);
  await one.db.run`delete from retention where what = 'sessions'`;
  expect(await one.store.sessions.endUnused(30)).toEqual({ removed: 1, more: false });
  expect(await accepts(unused)).toEqual([false, false]);
  for (const each of [used, fresh, token]) expect(await accepts(each)).toEqual([true, true]);
  // The clean-up of sessions runs at most once an hour, so this call does nothing.
  expect(await other.store.sessions.endUnused(1)).toBeNull();
});

test('simultaneous sign-ins of a person stay within the limit', async () => {
  const { id } = await makeUser(one);
  const count = limits.user_sessions_max + 6;
  await Promise.all(
    Array.from({ length: count }, (_, i) => (i % 2 ? one : other).store.sessions.start(id, '')),
  );
  expect(await one.store.sessions.list(id, '')).toHaveLength(limits.user_sessions_max);
});

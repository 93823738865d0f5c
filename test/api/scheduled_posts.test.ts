/** Tests scheduled posts of channels (decision 0087). */
import { afterAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type EventSource, openEvents } from '../clients/event_source.js';
import { ask } from '../support/postgres_pair.js';
import { type Answer, itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let channel: number;
const sources: EventSource[] = [];

onSharedService((running) => {
  service = running;
});
beforeEach(async () => {
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  channel = await newChannel();
});
afterAll(() => {
  for (const source of sources) source.cut();
});

const app = (who: TestUser, verb: string, path: string, body?: object, front = 0) =>
  service.app(who, verb, path, body, front);
const ok = (who: TestUser, verb: string, path: string, body?: object) => resultOf(app(who, verb, path, body));
const newChannel = async (): Promise<number> =>
  (await ok(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' })).id;
const at = (chat = channel) => `/api/chats/${chat}/scheduled_posts`;
const soon = (seconds = 3_600) => Math.floor(Date.now() / 1_000) + seconds;
const schedule = (text: string, more: object = {}, who = ann) =>
  ok(who, 'POST', at(), { text, publish_at: soon(), ...more });
const listed = (who = ann): Promise<Array<{ id: number; text: string; failure?: string }>> =>
  itemsOf(app(who, 'GET', at()));
const textsIn = async (chat = channel): Promise<string[]> =>
  (await itemsOf(app(ann, 'GET', `/api/chats/${chat}/messages`))).map(({ text }: { text: string }) => text);
const refusal = async (answer: Promise<Answer>) => {
  const { status, body } = await answer;
  return [status, body.description];
};
const put = (who: TestUser, body: object) => ok(ann, 'PUT', `/api/chats/${channel}/members/${who.id}`, body);
const makeAuthor = () => put(ben, { status: 'administrator', rights: { can_post_messages: true } });

const sql = (text: string, ...values: unknown[]) => ask<Answer['body']>(service.databaseUrl, text, values);
const makeDue = (id: number) =>
  sql("update scheduled_posts set publish_at = now() - interval '1 s', next_at = now() where id = $1", id);

const missing = [404, 'Not Found: scheduled post not found'];
const noRight = 'Bad Request: need administrator rights in the channel chat';

test('an author schedules, lists, changes and deletes posts', async () => {
  const publish_at = soon(7_200);
  const entities = [{ type: 'bold', offset: 0, length: 5 }];
  const post = await schedule('Hello world', { entities, publish_at });
  expect(post).toEqual({ id: post.id, chat_id: channel, text: 'Hello world', entities, publish_at });
  const other = await schedule('Other');
  expect(await listed()).toEqual([post, other]);
  const later = soon(9_000);
  const changed = await ok(ann, 'PATCH', `${at()}/${post.id}`, { publish_at: later });
  expect(changed).toEqual({ ...post, publish_at: later });
  const reworded = await ok(ann, 'PATCH', `${at()}/${post.id}`, { text: 'Bye' });
  expect(reworded).toEqual({ id: post.id, chat_id: channel, text: 'Bye', publish_at: later });
  await ok(ann, 'DELETE', `${at()}/${other.id}`);
  expect(await listed()).toEqual([reworded]);
  expect(await textsIn()).toEqual([]);
});

test('a due scheduled post is published once, and leaves the list', async () => {
  const post = await schedule('At **noon**', { entities: [{ type: 'italic', offset: 0, length: 2 }] });
  await makeDue(post.id);
  await expect.poll(() => textsIn()).toEqual(['At **noon**']);
  await expect.poll(() => listed()).toEqual([]);
  const [message] = await itemsOf(app(ann, 'GET', `/api/chats/${channel}/messages`));
  expect(message).toMatchObject({
    entities: [{ type: 'italic', offset: 0, length: 2 }],
    from: { id: ann.id },
  });
  expect(await itemsOf(app(ann, 'GET', `/api/chats/${channel}/posts`))).toHaveLength(1);
});

test('a repeated call to publish a post returns the same message', async () => {
  const post = await schedule('Again');
  const headers = { authorization: `Bearer ${ann.token}`, 'idempotency-key': 'publish' };
  const publish = async (front: number) => {
    const url = `${service.fronts[front]?.url}${at()}/${post.id}/publish`;
    return (await (await fetch(url, { method: 'POST', headers })).json()) as object;
  };
  const message = await publish(0);
  expect(message).toMatchObject({ ok: true, result: { text: 'Again' } });
  expect(await publish(1)).toEqual(message);
  expect(await textsIn()).toEqual(['Again']);
});

test('a scheduled post that a call publishes early is not published again', async () => {
  const post = await schedule('Now');
  const answers = await Promise.all(
    [0, 1, 0, 1].map((front) => app(ann, 'POST', `${at()}/${post.id}/publish`, {}, front)),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(await textsIn()).toEqual(['Now']);
  expect(await refusal(app(ann, 'POST', `${at()}/${post.id}/publish`))).toEqual(missing);
});

test('the other browser windows of the author are notified of each change', async () => {
  const source = await openEvents(service.fronts[1]?.url ?? '', ann.token);
  sources.push(source);
  const changes = () =>
    source.events.flatMap(({ event, data }) => (event === 'scheduled_posts' ? [data] : []));
  const post = await schedule('Draft');
  await ok(ann, 'PATCH', `${at()}/${post.id}`, { text: 'Final' });
  await ok(ann, 'POST', `${at()}/${post.id}/publish`);
  await expect.poll(changes).toEqual(Array.from({ length: 3 }, () => ({ chat_id: channel })));
});

test('only authors of a channel can schedule posts, and each author sees only their own posts', async () => {
  await ok(ben, 'POST', `/api/chats/${channel}/join`);
  const group = await service.newGroup(ann, 'Team', [ben]);
  const post = { text: 'x', publish_at: soon() };
  expect(await refusal(app(ben, 'POST', at(), post))).toEqual([400, noRight]);
  expect(await refusal(app(ann, 'POST', at(group), post))).toEqual([
    400,
    'Bad Request: posts can be scheduled in channels only',
  ]);
  await makeAuthor();
  const { id } = await schedule('By Ann');
  await schedule('By Ben', {}, ben);
  expect((await listed(ben)).map(({ text }) => text)).toEqual(['By Ben']);
  for (const [verb, path, body] of [
    ['PATCH', `${at()}/${id}`, { text: 'y' }],
    ['DELETE', `${at()}/${id}`, undefined],
    ['POST', `${at()}/${id}/publish`, undefined],
  ] as const)
    expect(await refusal(app(ben, verb, path, body))).toEqual(missing);
  expect((await listed()).map(({ text }) => text)).toEqual(['By Ann']);
});

test('a post must be scheduled one minute to 365 days ahead', async () => {
  const wrong = [400, 'Bad Request: a post can be scheduled 1 minute to 365 days ahead'];
  for (const seconds of [-10, 30, 366 * 86_400])
    expect(await refusal(app(ann, 'POST', at(), { text: 'x', publish_at: soon(seconds) }))).toEqual(wrong);
  await schedule('x', { publish_at: soon(364 * 86_400) });
  const { id } = await schedule('y');
  expect(await refusal(app(ann, 'PATCH', `${at()}/${id}`, { publish_at: soon(-10) }))).toEqual(wrong);
  await sql("update scheduled_posts set publish_at = now() + interval '55 s' where id = $1", id);
  await ok(ann, 'PATCH', `${at()}/${id}`, { text: 'z' });
  expect(await refusal(app(ann, 'PATCH', `${at()}/${id}`, { text: ' ' }))).toEqual([
    400,
    'Bad Request: message text is empty',
  ]);
  expect((await listed()).map(({ text }) => text)).toEqual(['x', 'z']);
  await ok(ann, 'DELETE', `${at()}/${id}`);
});

test('a scheduled post fails if its author may no longer post, and changing the failed post schedules it again', async () => {
  await ok(ben, 'POST', `/api/chats/${channel}/join`);
  await makeAuthor();
  const { id } = await schedule('By Ben', {}, ben);
  await put(ben, { status: 'member' });
  await makeDue(id);
  await expect.poll(async () => (await listed(ben)).map(({ failure }) => failure)).toEqual([noRight]);
  expect(await refusal(app(ben, 'POST', `${at()}/${id}/publish`))).toEqual([400, noRight]);
  await makeAuthor();
  const changed = await ok(ben, 'PATCH', `${at()}/${id}`, { publish_at: soon() });
  expect(changed.failure).toBeUndefined();
  await makeDue(id);
  await expect.poll(() => textsIn()).toEqual(['By Ben']);
});

test('a scheduled post cannot be changed while it is being published, and an interrupted attempt is repeated later', async () => {
  const { id } = await schedule('Late');
  await sql(
    "update scheduled_posts set tried_at = now(), next_at = now() + interval '1 h' where id = $1",
    id,
  );
  const publishing = [400, 'Bad Request: the scheduled post is being published'];
  expect(await refusal(app(ann, 'PATCH', `${at()}/${id}`, { text: 'x' }))).toEqual(publishing);
  expect(await refusal(app(ann, 'DELETE', `${at()}/${id}`))).toEqual(publishing);
  expect(await refusal(app(ann, 'POST', `${at()}/${id}/publish`))).toEqual(publishing);
  await makeDue(id);
  await expect.poll(() => textsIn()).toEqual(['Late']);
  await expect.poll(() => listed()).toEqual([]);
});

test('a scheduled post fails without another attempt if the outcome of its first attempt can no longer be determined', async () => {
  const { id } = await schedule('Unknown');
  await sql(
    "update scheduled_posts set tried_at = now() - interval '24 h', next_at = now() where id = $1",
    id,
  );
  const failure = 'Bad Request: it is unknown whether the scheduled post was published';
  await expect.poll(async () => (await listed()).map((post) => post.failure)).toEqual([failure]);
  expect(await textsIn()).toEqual([]);
  await ok(ann, 'DELETE', `${at()}/${id}`);
});

const full = [400, 'Bad Request: too many scheduled posts'];
const fill = (count: number, author = ann) =>
  sql(
    `insert into scheduled_posts (chat_id, user_id, content, publish_at, next_at)
     select $1, $2, '\\x80', now() + interval '1 h', now() + interval '1 h' from generate_series(1, $3::int)`,
    channel,
    author.id,
    count,
  );

test('a channel and a person have a limited number of scheduled posts', async () => {
  const most = limits.scheduled_posts_per_chat_max;
  await fill(most);
  expect(await refusal(app(ann, 'POST', at(), { text: 'x', publish_at: soon() }))).toEqual(full);
  const rounds = Math.floor(limits.scheduled_posts_per_person_max / most);
  for (let round = 1; round < rounds; round++) {
    channel = await newChannel();
    await fill(most);
  }
  channel = await newChannel();
  expect(await refusal(app(ann, 'POST', at(), { text: 'x', publish_at: soon() }))).toEqual(full);
});

test("while an author may not post, the author's scheduled posts do not count against the limit of the channel", async () => {
  await makeAuthor();
  await fill(limits.scheduled_posts_per_chat_max, ben);
  expect(await refusal(app(ann, 'POST', at(), { text: 'x', publish_at: soon() }))).toEqual(full);
  await put(ben, { status: 'member' });
  await schedule('x');
  expect((await listed()).map(({ text }) => text)).toEqual(['x']);
  await makeAuthor();
  expect(await refusal(app(ann, 'POST', at(), { text: 'y', publish_at: soon() }))).toEqual(full);
});

test('scheduled posts are exported, and are deleted with the account', async () => {
  const post = await schedule('Mine');
  const answer = await fetch(`${service.fronts[0].url}/api/me/export`, {
    headers: { authorization: `Bearer ${ann.token}` },
  });
  const lines = (await answer.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toContainEqual({ kind: 'scheduled_post', scheduled_post: post });
  await ok(ann, 'DELETE', '/api/me', { confirm: true });
  expect(await sql('select 1 from scheduled_posts where user_id = $1', ann.id)).toEqual([]);
});

test('a scheduled post whose row is corrupt fails, and all other due posts are published', async () => {
  const made = [];
  for (const text of ['First', 'Second', 'Third']) made.push((await schedule(text)).id);
  const [, corrupt] = made;
  // Stores content that ends too early, so that it cannot be decoded.
  await sql("update scheduled_posts set content = '\\x81' where id = $1", corrupt);
  await sql('update scheduled_posts set publish_at = now(), next_at = now() where id = any($1)', made);
  await expect.poll(async () => (await textsIn()).sort()).toEqual(['First', 'Third']);
  const failure = 'Bad Request: message text is empty';
  await expect.poll(() => listed()).toMatchObject([{ id: corrupt, text: '', failure }]);
  await ok(ann, 'DELETE', `${at()}/${corrupt}`);
  expect(await listed()).toEqual([]);
});

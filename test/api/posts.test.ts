import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually, openEvents } from '../clients/event_source.js';
import { openAnywhere } from '../support/cluster.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let redis: Redis;
let postgres: pg.Client;
let owner: TestUser;
let ann: TestUser;
let ben: TestUser;
let bot: TestBot;
let channel: number;
const external = new Map<TestUser, string>();

onSharedService(async (running) => {
  service = running;
  redis = openAnywhere(service.redis);
  postgres = new pg.Client({ connectionString: service.databaseUrl });
  await postgres.connect();
  owner = await service.newUser('olga');
  ann = await service.newUser('ann');
  ben = await service.newUser('ben');
  for (const user of [ann, ben]) {
    external.set(user, (await resultOf(service.app(user, 'GET', '/api/me'))).external_id);
  }
  bot = await service.newBot(owner, 'news');
  channel = await newChannel();
});
afterAll(async () => {
  redis.disconnect();
  await postgres.end();
});

async function newChannel(isPrivate = false): Promise<number> {
  const { id } = await resultOf(service.app(owner, 'POST', '/api/chats', { type: 'channel', title: 'News' }));
  await postgres.query('update chats set private = $2 where id = $1', [id, isPrivate]);
  const rights = { can_post_messages: true, can_edit_messages: true };
  await resultOf(
    service.app(owner, 'PUT', `/api/chats/${id}/members/${bot.id}`, { status: 'administrator', rights }),
  );
  return id;
}

const newPost = (chat = channel, text = 'a post') =>
  resultOf(service.bot(bot, 'createPost', { chat_id: chat, text }));

/** Waits until Postgres has all changes, then deletes the Redis keys that may be evicted. */
async function evictAll(): Promise<void> {
  const journals = await redis.keys('*:journal');
  for (;;) {
    const lengths = await Promise.all(journals.map((key) => redis.xlen(key)));
    if (lengths.every((length) => length === 0)) break;
    await sleep(20);
  }
  const cold = [];
  for (const key of await redis.keys('*')) {
    if (/:(post|acted|chat|msg|member|user):/.test(key)) cold.push(key);
  }
  // Redis never evicts a key without a time to live, so each of these keys must have one.
  for (const key of cold) expect([key, await redis.pttl(key)]).not.toEqual([key, -1]);
  await Promise.all(cold.map((key) => redis.del(key)));
}

const reactions = (post: { readonly external_id: string }, query = '') =>
  `/api/posts/${post.external_id}/reactions${query}`;
const heart = '\u2764';
const query = (emoji: string) => `?emoji=${encodeURIComponent(emoji)}`;

describe.each([
  ['hot', async () => undefined],
  ['cold', evictAll],
])('with a %s post', (_, between) => {
  let post: { id: number; external_id: string; message_id: number };
  const react = async (user: TestUser, emoji: string) => {
    await between();
    return service.app(user, 'POST', reactions(post), { emoji });
  };
  const take = async (user: TestUser, emoji?: string) => {
    await between();
    return service.app(user, 'DELETE', reactions(post, emoji === undefined ? '' : query(emoji)));
  };
  const entry = (emoji: string, ...users: TestUser[]) => ({
    emoji,
    count: users.length,
    user_ids: users.map((user) => external.get(user)),
  });

  beforeEach(async () => {
    post = await newPost();
  });

  test("a reaction appears in the counts, in the list and as the caller's own reaction", async () => {
    const { status, body } = await react(ann, '👍');
    expect([status, body]).toEqual([200, { ok: true, reactions: [entry('👍', ann)], my_reactions: ['👍'] }]);
    expect((await react(ann, '👍')).body.reactions).toEqual([entry('👍', ann)]);
    const second = await react(ben, '👍');
    expect(second.body).toEqual({ ok: true, reactions: [entry('👍', ben, ann)], my_reactions: ['👍'] });
    expect((await react(ann, '👍')).body.reactions).toEqual([entry('👍', ann, ben)]);
  });

  test('the different reactions on a post are ordered by count, then by first use', async () => {
    await react(ann, '🔥');
    await react(ann, '👍');
    const { body } = await react(ben, '👍');
    expect(body.reactions).toEqual([entry('👍', ben, ann), entry('🔥', ann)]);
    expect(body.my_reactions).toEqual(['👍']);
    expect((await react(ben, '🔥')).body.reactions.map((r: { emoji: string }) => r.emoji)).toEqual([
      '🔥',
      '👍',
    ]);
  });

  test('removing one reaction keeps the other reactions', async () => {
    await react(ann, '🔥');
    await react(ann, '👍');
    expect((await take(ann, '🔥')).body).toEqual({
      ok: true,
      reactions: [entry('👍', ann)],
      my_reactions: ['👍'],
    });
    expect((await take(ann, '🔥')).status).toBe(200);
    expect((await take(ben, '👍')).body).toEqual({
      ok: true,
      reactions: [entry('👍', ann)],
      my_reactions: [],
    });
  });

  test('removing all reactions of one user keeps the reactions of others', async () => {
    await react(ann, '🔥');
    await react(ann, '👍');
    await react(ben, '👍');
    expect((await take(ann)).body).toEqual({ ok: true, reactions: [entry('👍', ben)], my_reactions: [] });
    expect((await take(ben)).body).toEqual({ ok: true, reactions: [], my_reactions: [] });
    expect((await react(ben, '🔥')).body.reactions).toEqual([entry('🔥', ben)]);
  });

  test('a like is a heart reaction, whether the emoji has the suffix U+FE0F or not', async () => {
    await between();
    const liked = await service.app(ann, 'POST', `/api/posts/${post.id}/like`);
    expect(liked.body).toEqual({ ok: true, reactions: [entry(heart, ann)], my_reactions: [heart] });
    expect((await react(ann, `${heart}\ufe0f`)).body).toEqual(liked.body);
    await between();
    const seen = await resultOf(service.app(ann, 'GET', `/api/posts/${post.external_id}`));
    expect(seen).toMatchObject({
      id: post.id,
      liked_by_me: true,
      text: 'a post',
      reactions: [entry(heart, ann)],
    });
    const other = await resultOf(service.app(ben, 'GET', `/api/posts/${post.id}`));
    expect(other).toMatchObject({ liked_by_me: false, reactions: [entry(heart, ann)] });
    expect(await resultOf(service.bot(bot, 'getPost', { post_id: post.id }))).toMatchObject({
      external_id: post.external_id,
      liked_by_me: false,
      reactions: [entry(heart, ann)],
    });
    await between();
    const unliked = await service.app(ann, 'DELETE', `/api/posts/${post.external_id}/like`);
    expect(unliked.body).toEqual({ ok: true, reactions: [], my_reactions: [] });
  });

  test('a post keeps its reactions when its bot edits it', async () => {
    await react(ann, '🔥');
    await between();
    const edited = await resultOf(
      service.bot(bot, 'editPost', { external_id: post.external_id, text: 'new' }),
    );
    expect(edited).toMatchObject({ id: post.id, text: 'new', reactions: [entry('🔥', ann)] });
    expect(edited.edit_date).toBeTypeOf('number');
  });

  test('deleting a message also removes its post', async () => {
    await react(ann, '🔥');
    await between();
    await resultOf(service.app(owner, 'DELETE', `/api/chats/${channel}/messages/${post.message_id}`));
    const gone = [404, 'Not Found: post not found'];
    const seen = ({ status, body }: { status: number; body: { description: string } }) => [
      status,
      body.description,
    ];
    expect(seen(await react(ann, '👍'))).toEqual(gone);
    await between();
    expect(seen(await service.app(ann, 'GET', `/api/posts/${post.id}`))).toEqual(gone);
    expect(seen(await service.bot(bot, 'getPost', { post_id: post.id }))).toEqual(gone);
  });

  test('only members can see posts of a private channel', async () => {
    const closed = await newChannel(true);
    post = await newPost(closed);
    expect((await react(ann, '👍')).status).toBe(404);
    await between();
    expect((await service.app(ann, 'GET', `/api/posts/${post.id}`)).body.description).toBe(
      'Not Found: post not found',
    );
    expect((await service.app(ann, 'GET', `/api/chats/${closed}/posts`)).status).toBe(404);
    await resultOf(service.app(owner, 'PUT', `/api/chats/${closed}/members/${ann.id}`, {}));
    expect((await react(ann, '👍')).body.reactions).toEqual([entry('👍', ann)]);
  });
});

test('a bot that requests message_reaction_count gets the counts of a post', async () => {
  const chat = await newChannel();
  const post = await newPost(chat);
  const allowed_updates = ['message_reaction_count'];
  await resultOf(service.bot(bot, 'getUpdates', { allowed_updates }));
  await resultOf(service.bot(bot, 'deleteWebhook', { drop_pending_updates: true }));
  await service.app(ann, 'POST', reactions(post), { emoji: '👍' });
  let offset = 0;
  for (let counts: { chat: { id: number } } | undefined; counts?.chat.id !== chat; ) {
    const [update] = await resultOf(service.bot(bot, 'getUpdates', { offset, limit: 1, timeout: 30 }));
    expect(update).toEqual({ update_id: expect.any(Number), message_reaction_count: expect.any(Object) });
    counts = update.message_reaction_count;
    offset = update.update_id + 1;
    if (counts?.chat.id !== chat) continue;
    expect(counts).toEqual({
      chat: { id: chat, type: 'channel', title: 'News' },
      message_id: post.message_id,
      date: expect.any(Number),
      reactions: [{ type: { type: 'emoji', emoji: '👍' }, total_count: 1 }],
    });
  }
  await service.bot(bot, 'getUpdates', { offset, allowed_updates: [] });
});

test('pages of reactions show each reaction once', async () => {
  const post = await newPost();
  for (const user of [ann, ben, owner]) await service.app(user, 'POST', reactions(post), { emoji: '👍' });
  await service.app(ann, 'POST', reactions(post), { emoji: '🔥' });
  await evictAll();
  const seen: Array<[string, string]> = [];
  let cursor = '';
  do {
    const page = await resultOf(service.app(ben, 'GET', reactions(post, `?limit=2&cursor=${cursor}`)));
    for (const { user_id, emoji } of page.items) seen.push([emoji, user_id]);
    cursor = page.next_cursor ?? '';
  } while (cursor !== '');
  expect(seen).toHaveLength(4);
  expect(new Set(seen.map(String)).size).toBe(4);
  const only = await resultOf(service.app(ben, 'GET', reactions(post, query('🔥'))));
  expect(only.items).toMatchObject([{ user_id: external.get(ann), emoji: '🔥' }]);
  const [first] = await itemsOf(service.app(ann, 'GET', `/api/chats/${channel}/posts?limit=1`));
  expect(first).toMatchObject({ id: post.id, external_id: post.external_id, chat: { id: channel } });
  expect(first.reactions[0]).toMatchObject({ emoji: '👍', count: 3 });
});

test('invalid emoji, reactions by bots and more than 20 reactions per person are refused', async () => {
  const post = await newPost();
  const describe = async (answer: ReturnType<Service['app']>) => {
    const { status, body } = await answer;
    return [status, body.description];
  };
  const invalid = [400, 'Bad Request: invalid reaction specified'];
  for (const emoji of ['', 'x', '1', '👍👍', '👍 ', '\u200d', 7, null, heart.repeat(40)]) {
    expect(await describe(service.app(ann, 'POST', reactions(post), { emoji }))).toEqual(invalid);
  }
  expect(await describe(service.app(ann, 'DELETE', reactions(post, '?emoji=')))).toEqual(invalid);
  expect(await describe(service.app(ann, 'POST', reactions(post), {}))).toEqual([
    400,
    'Bad Request: parameter "emoji" is required',
  ]);
  const last = post.external_id.slice(-1);
  const forged = post.external_id.slice(0, -1) + (last === '0' ? '1' : '0');
  for (const name of [forged, 'x', '0', '999999999999999', `${post.id + 1000}`, `${post.id + 900}`]) {
    expect(await describe(service.app(ann, 'POST', `/api/posts/${name}/like`))).toEqual([
      404,
      'Not Found: post not found',
    ]);
  }
  expect(await describe(service.app(bot, 'POST', reactions(post), { emoji: '👍' }))).toEqual([
    401,
    'Unauthorized',
  ]);
  const many = Array.from({ length: 21 }, (_, i) => String.fromCodePoint(0x1f600 + i));
  for (const emoji of many.slice(0, 20)) await service.app(ann, 'POST', reactions(post), { emoji });
  expect(await describe(service.app(ann, 'POST', reactions(post), { emoji: many[20] }))).toEqual([
    400,
    'Bad Request: too many reactions',
  ]);
});

test('an event stream opened for a post reports its reactions at most four times a second', async () => {
  const post = await newPost();
  // Opens the stream on the second front, because the reactions are made on the first front.
  const url = service.fronts[1]?.url ?? '';
  const refused = await fetch(`${url}/api/stream?post=1001`, {
    headers: { authorization: `Bearer ${ann.token}` },
  });
  expect(refused.status).toBe(404);
  const stream = await openEvents(url, ann.token, { path: `/api/stream?post=${post.external_id}` });
  const shown = () => stream.events.flatMap(({ event, data }) => (event === 'post_reactions' ? [data] : []));
  await eventually(() => expect(shown()).not.toEqual([]));
  expect(shown()[0]).toMatchObject({ post_id: post.id, external_id: post.external_id, reactions: [] });
  const many = Array.from({ length: 20 }, (_, i) => String.fromCodePoint(0x1f600 + i));
  const began = Date.now();
  for (const emoji of many) await service.app(ben, 'POST', reactions(post), { emoji });
  await eventually(() => expect(shown().at(-1).reactions).toHaveLength(many.length));
  expect(shown().length - 1).toBeLessThanOrEqual(Math.ceil((Date.now() - began) / 250));
  stream.cut();
});

/** Interface tests of reactions (interface §3), and of the endpoints with which people react to posts (§4.1). */
import { expect } from 'vitest';
import type { Case, Person, Post } from './case.js';
import { freshPost } from './fields.rows.js';
import { ok, type Row, refusal, row, unauthorized } from './row.js';
import { heart, post, reaction, reactions } from './shapes.js';

interface Reacted {
  readonly post: Post;
  readonly path: string;
}

const reacted =
  (...all: ReadonlyArray<readonly ['ann' | 'ben', string]>) =>
  async (c: Case): Promise<Reacted> => {
    const at = await freshPost(c);
    const path = `/api/posts/${at.post.external_id}`;
    for (const [who, emoji] of all) await c.app(c[who], 'POST', `${path}/reactions`, { emoji });
    return { ...at, path };
  };

const query = (emoji: string) => `?emoji=${encodeURIComponent(emoji)}`;

async function everybodySees(c: Case, at: Reacted, all: readonly object[]): Promise<void> {
  const reader = await c.person();
  const seen = await c.appResult(reader, 'GET', at.path);
  expect(seen.reactions).toEqual(all);
  const { result } = (await c.call(c.press, 'getPost', { post_id: at.post.id })).body;
  expect(result).toEqual(post(c, at.post, all));
}

interface Transition {
  readonly title: string;
  readonly arrange: (c: Case) => Promise<Reacted>;
  readonly verb: 'POST' | 'DELETE';
  readonly path: string;
  readonly emoji?: string;
  /** All reactions on the post after Ann's call, and the reactions that Ann set. */
  readonly all: (ann: Person, ben: Person) => readonly object[];
  readonly own: readonly string[];
}

const transitions: readonly Transition[] = [
  {
    title: '§3 Post reaction: not set, POST reactions → set, and counted in count, user_ids and my_reactions',
    arrange: reacted(),
    ...{ verb: 'POST', path: '/reactions', emoji: '👍' },
    ...{ all: (ann) => [reaction('👍', ann)], own: ['👍'] },
  },
  {
    title:
      "§3 Post reaction: set by another, POST reactions → count increments, and the other's reaction stays",
    arrange: reacted(['ben', '👍']),
    ...{ verb: 'POST', path: '/reactions', emoji: '👍' },
    ...{ all: (ann, ben) => [reaction('👍', ann, ben)], own: ['👍'] },
  },
  {
    title: '§3 Post reaction: another emoji set, POST reactions → one user has both on one post',
    arrange: reacted(['ann', '🔥']),
    ...{ verb: 'POST', path: '/reactions', emoji: '👍' },
    ...{ all: (ann) => [reaction('🔥', ann), reaction('👍', ann)], own: ['🔥', '👍'] },
  },
  {
    title: '§3 Post reaction: set, POST reactions again → set once',
    arrange: reacted(['ann', '👍']),
    ...{ verb: 'POST', path: '/reactions', emoji: '👍' },
    ...{ all: (ann) => [reaction('👍', ann)], own: ['👍'] },
  },
  {
    title: '§3 Post reaction: set, DELETE reactions with emoji → not set, and absent from my_reactions',
    arrange: reacted(['ann', '👍'], ['ann', '🔥'], ['ben', '👍']),
    ...{ verb: 'DELETE', path: `/reactions${query('👍')}` },
    ...{ all: (ann, ben) => [reaction('👍', ben), reaction('🔥', ann)], own: ['🔥'] },
  },
  {
    title: '§3 Post reaction: not set, DELETE reactions with emoji → nothing changes',
    arrange: reacted(['ben', '👍']),
    ...{ verb: 'DELETE', path: `/reactions${query('👍')}` },
    ...{ all: (_, ben) => [reaction('👍', ben)], own: [] },
  },
  {
    title:
      "§3 Post reactions: any set, DELETE reactions without emoji → none of the user's own left, others stay",
    arrange: reacted(['ann', '👍'], ['ann', '🔥'], ['ann', heart], ['ben', '🔥']),
    ...{ verb: 'DELETE', path: '/reactions' },
    ...{ all: (_, ben) => [reaction('🔥', ben)], own: [] },
  },
  {
    title: '§3 Post reactions: none set, DELETE reactions without emoji → nothing changes',
    arrange: reacted(['ben', '🔥']),
    ...{ verb: 'DELETE', path: '/reactions' },
    ...{ all: (_, ben) => [reaction('🔥', ben)], own: [] },
  },
  {
    title: '§3 Heart reaction: not set, POST like → set, like a reaction with the heart emoji',
    arrange: reacted(['ben', heart]),
    ...{ verb: 'POST', path: '/like' },
    ...{ all: (ann, ben) => [reaction(heart, ann, ben)], own: [heart] },
  },
  {
    title: '§3 Heart reaction: set by POST reactions, POST like → set once',
    arrange: reacted(['ann', `${heart}\ufe0f`]),
    ...{ verb: 'POST', path: '/like' },
    ...{ all: (ann) => [reaction(heart, ann)], own: [heart] },
  },
  {
    title: '§3 Heart reaction: set, DELETE like → not set, other emoji stay',
    arrange: reacted(['ann', heart], ['ann', '👍'], ['ben', heart]),
    ...{ verb: 'DELETE', path: '/like' },
    ...{ all: (ann, ben) => [reaction(heart, ben), reaction('👍', ann)], own: ['👍'] },
  },
  {
    title: '§3 Heart reaction: not set, DELETE like → nothing changes',
    arrange: reacted(['ann', '👍']),
    ...{ verb: 'DELETE', path: '/like' },
    ...{ all: (ann) => [reaction('👍', ann)], own: ['👍'] },
  },
];

const transitionRows = transitions.map(({ title, arrange, verb, path, emoji, all, own }) =>
  row({
    title,
    arrange,
    act: (c, at) => c.app(c.ann, verb, at.path + path, emoji === undefined ? undefined : { emoji }),
    answer: (_, c) => reactions(all(c.ann, c.ben), own),
    async after(c, at) {
      const left = [...all(c.ann, c.ben)];
      const listed = await c.appResult(c.ann, 'GET', at.path);
      expect([listed.reactions, listed.liked_by_me]).toEqual([left, own.includes(heart)]);
      // For a viewer who has not reacted, the list begins with the users who reacted last.
      await everybodySees(c, at, left);
    },
  }),
);

/** The paths after `/api/posts/` that the table of §4.1 lists. */
const calls = [
  ['POST', 'reactions', { emoji: '👍' }],
  ['DELETE', `reactions${query('👍')}`, undefined],
  ['DELETE', 'reactions', undefined],
  ['POST', 'like', undefined],
  ['DELETE', 'like', undefined],
] as const;

const named = (path: string) => path.replace(/\?.*/, '?emoji=');

const endpointRows = calls.flatMap(([verb, path, body]) => {
  const sent = body === undefined ? undefined : JSON.stringify(body);
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  const name = `§4.1 ${verb} /api/posts/{id}/${named(path)}`;
  const arrange = reacted(['ann', '👍'], ['ann', heart], ['ben', '👍']);
  const left = (ann: Person, ben: Person): readonly [readonly object[], readonly string[]] => {
    const hearts = reaction(heart, ann);
    if (path === 'reactions' && verb === 'DELETE') return [[reaction('👍', ben)], []];
    if (path === 'like' && verb === 'DELETE') return [[reaction('👍', ann, ben)], ['👍']];
    if (verb === 'DELETE') return [[reaction('👍', ben), hearts], [heart]];
    return [
      [reaction('👍', ann, ben), hearts],
      ['👍', heart],
    ];
  };
  const answer = (_: unknown, c: Case) => {
    const [all, own] = left(c.ann, c.ben);
    return reactions(all, own);
  };
  const asAnn = (c: Case, id: string | number) =>
    c.http(verb, `/api/posts/${id}/${path}`, { authorization: `Bearer ${c.ann.token}`, ...type }, sent);
  return [
    row({
      title: `${name}, by the external id → the payload`,
      ...{ arrange, answer, act: (c: Case, at: Reacted) => asAnn(c, at.post.external_id) },
    }),
    row({
      title: `${name}, by the number → the payload`,
      ...{ arrange, answer, act: (c: Case, at: Reacted) => asAnn(c, at.post.id) },
    }),
    row({
      title: `${name}, of an unknown post → 404`,
      ...{ arrange, act: (c: Case) => asAnn(c, '00000000-0000-4000-8000-000000000000') },
      answer: () => refusal(404, 'Not Found: post not found'),
    }),
    row({
      title: `${name}, without a token → 401`,
      arrange,
      act: (c, at) => c.http(verb, `/api/posts/${at.post.id}/${path}`, type, sent),
      answer: () => unauthorized,
    }),
    row({
      title: `${name}, with the token of a bot → 401: bots cannot react on their own behalf`,
      arrange,
      act: (c, at) => c.app(c.press, verb, `/api/posts/${at.post.id}/${path}`, body),
      answer: () => unauthorized,
    }),
  ];
});

const noBotReacts = row({
  title: '§4.1 setMessageReaction → 400: bots cannot react through the bot interface',
  arrange: reacted(['ann', '👍']),
  act: (c, at) =>
    c.call(c.press, 'setMessageReaction', {
      ...{ chat_id: c.channel, message_id: at.post.message_id },
      reaction: [{ type: 'emoji', emoji: '👍' }],
    }),
  answer: () => refusal(400, "Bad Request: bots can't set reactions"),
});

/** Makes a row for a bot method whose answer shows the reactions of people (§6). */
const shown = (title: string, method: string, more: object, changed: object) =>
  row({
    title,
    arrange: reacted(['ann', '👍'], ['ben', heart], ['ben', '👍']),
    act: (c, at) => c.call(c.press, method, { post_id: at.post.id, ...more }),
    answer: (at, c) =>
      ok({
        ...post(c, at.post, [reaction('👍', c.ben, c.ann), reaction(heart, c.ben)]),
        ...changed,
      }),
  });

export const reactionRows: readonly Row[] = [
  ...transitionRows,
  ...endpointRows,
  noBotReacts,
  shown('§6 post reactions: shown in getPost', 'getPost', {}, {}),
  shown(
    '§6 post reactions: shown in editPost',
    'editPost',
    { text: 'Edited' },
    { text: 'Edited', edit_date: expect.any(Number) },
  ),
  row({
    title: '§6 post reactions: createPost shows them, and a new post has none',
    arrange: (c) => c.post(),
    act: (c) => c.call(c.press, 'createPost', { chat_id: c.channel, text: 'A post' }),
    answer: (_, c) =>
      ok(
        post(c, {
          ...{ id: expect.any(Number), message_id: expect.any(Number), date: 0 },
          external_id: expect.any(String),
        }),
      ),
    async after(c, _, { body: { result } }) {
      expect((await c.call(c.press, 'getPost', { external_id: result.external_id })).body).toEqual(
        ok(result),
      );
    },
  }),
];

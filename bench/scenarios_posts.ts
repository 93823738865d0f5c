/** Reactions: P2 beside the same script on a bare server, P9 on a post with very many beside one with ten. */
import { isDeepStrictEqual } from 'node:util';
import { expect, inParallel } from './client.js';
import { fillReactions, untilFlushed } from './fill_reactions.js';
import { makePeople, makePosts, type Person, type Post } from './population.js';
import type { RedisWatch } from './redis_watch.js';
import { ask, type Prepared, type Scenario, type Side } from './scenario.js';
import type { Call } from './series.js';
import type { Site, Target } from './site.js';

const heart = '❤';
const emoji = encodeURIComponent(heart);

interface Payload {
  readonly reactions: ReadonlyArray<{
    readonly emoji: string;
    readonly count: number;
    readonly user_ids: readonly string[];
  }>;
  readonly my_reactions: readonly string[];
}

const pathOf = ({ external_id }: Post) => `/api/posts/${external_id}/reactions`;
const set = (target: Target, post: Post, { token }: Person) =>
  ask<Payload>(target, pathOf(post), { token, body: { emoji: heart } });
const remove = (target: Target, post: Post, { token }: Person) =>
  ask<Payload>(target, `${pathOf(post)}?emoji=${emoji}`, { verb: 'DELETE', token });

const heartsOf = ({ reactions }: Payload) => reactions.find((reaction) => reaction.emoji === heart);

/** Posts of one channel, the people who react, and how many hearts others have put on each post. */
interface Stage {
  readonly posts: readonly Post[];
  readonly people: readonly Person[];
  readonly others: number;
}

/** One call a person and post: all are set in one pass, and removed in the next. */
function series({ posts, people }: Stage, { baseUrl }: Target): Side['series'] {
  const path = '/api/posts/{1}/reactions';
  const calls: Call[] = [
    { verb: 'POST', path, token: '{2}', body: JSON.stringify({ emoji: heart }) },
    { verb: 'DELETE', path: `${path}?emoji=${emoji}`, token: '{2}' },
  ];
  const rows = people.flatMap(({ token }) => posts.map(({ external_id }) => [external_id, token]));
  return { origin: baseUrl, calls, rows };
}

/** Takes back what a load left, then sets and removes one: each answer and every count must be right to one. */
async function verify(site: Site, target: Target, { posts, people, others }: Stage): Promise<void> {
  await inParallel(posts.length * people.length, 16, (i) => {
    const post = posts[i % posts.length] as Post;
    return remove(site.front, post, people[Math.floor(i / posts.length)] as Person);
  });
  const [person] = people as [Person];
  const counts = await inParallel(posts.length, 16, async (i) => {
    const post = posts[i] as Post;
    const after = heartsOf(await set(target, post, person));
    expect(after?.user_ids[0] === person.externalId, 'a reaction does not show who set it');
    const back = await remove(target, post, person);
    expect(back.my_reactions.length === 0, 'a reaction that was removed is still there');
    return [after?.count, heartsOf(back)?.count ?? 0];
  });
  for (const [after, back] of counts)
    expect(
      after === others + 1 && back === others,
      `${back} hearts are counted on a post that has ${others}`,
    );
}

export const reactions: Scenario = {
  name: 'reactions',
  proof: 'P2',
  goal: { share: 0.8 },
  // The reaction and the count.
  versions: 2,
  async prepare(site, _watch, sizes) {
    const people = await makePeople(site, 'reactor', 20);
    const { posts } = await makePosts(site, people[0] as Person, sizes.posts);
    const stage: Stage = { posts, people, others: 0 };
    const floor = await site.startFloor({
      kind: 'react',
      posts: Object.fromEntries(posts.map(({ id, external_id }) => [external_id, id])),
      people: Object.fromEntries(people.map(({ token, ...person }) => [token, person])),
    });
    const [post, [one, two]] = [posts[0] as Post, people as [Person, Person]];
    await set(site.front, post, one);
    const shown = await set(site.front, post, two);
    const bare = await set(floor, post, two);
    expect(isDeepStrictEqual(bare, shown), 'the floor answers with another payload');
    const side = (target: Target): Side => ({
      target,
      series: series(stage, target),
      verify: () => verify(site, target, stage),
    });
    return { base: side(floor), subject: side(site.front), labels: ['floor', 'service'] };
  },
};

/**
 * Rows of either side: people on the large post, or on posts of the small case. So few people leave enough in the list of the
 * latest reactors when they take their hearts back: to fill it up again from Postgres is no part of one more reaction.
 */
const growing = { rows: 48, posts: 24, others: 10 };

const largePosts = new WeakMap<Site, Promise<Post>>();

/** The one large post of a run: whoever measured on it has taken their own hearts back. */
function theLargePost(site: Site, watch: RedisWatch, count: number): Promise<Post> {
  const make = async () => {
    const [owner] = (await makePeople(site, 'large_owner', 1)) as [Person];
    const [post] = (await makePosts(site, owner, 1)).posts as [Post];
    await fillReactions(watch, post.id, heart, count);
    return post;
  };
  const made = largePosts.get(site) ?? make();
  largePosts.set(site, made);
  return made;
}

/** One more heart on a post with very many, beside one on posts with `others`. */
function largePostAgainst(others: number) {
  return async (...[site, watch, sizes]: Parameters<Scenario['prepare']>): Promise<Prepared> => {
    const people = await makePeople(site, `fan_${others}`, growing.rows);
    const few = (await makePosts(site, people[0] as Person, growing.posts)).posts;
    for (const { id } of few) await fillReactions(watch, id, heart, others);
    const large = await theLargePost(site, watch, sizes.reactions);
    await untilFlushed(watch, site.signal);
    const target = site.front;
    const side = (stage: Stage): Side => ({
      target,
      series: series(stage, target),
      verify: () => verify(site, target, stage),
    });
    const name = (count: number) => `on ${count.toLocaleString('en')}`;
    return {
      base: side({ posts: few, people: people.slice(0, growing.rows / growing.posts), others }),
      subject: side({ posts: [large], people, others: sizes.reactions }),
      labels: [name(others), name(sizes.reactions)],
    };
  };
}

export const largePost: Scenario = {
  name: 'reaction',
  proof: 'P9',
  goal: { growth: 1.2, of: 'both' },
  versions: 2,
  // A heart that is taken back before it was set would change nothing: few requests may overtake one another.
  connectionsMax: 8,
  prepare: largePostAgainst(growing.others),
};

/** Beside a post whose list of users is as long as any: what is left is what the number of reactions itself costs. */
export const largePostAlone: Scenario = {
  ...largePost,
  name: 'reaction_full',
  prepare: largePostAgainst(150),
};

/** P9: one more reaction on a post with very many, compared with posts that have few. */
import { fillReactions, untilFlushed } from '../site/fill_reactions.js';
import { makePeople, makePosts, type Person, type Post } from '../site/population.js';
import type { RedisWatch } from '../site/redis_watch.js';
import type { Site } from '../site/site.js';
import { heart, reactionSeries, type Stage, verifyReactions } from './hearts.js';
import type { Prepared, Scenario, Side } from './scenario.js';

/**
 * Rows of each side: people on the large post, or on posts of the small case. With few people, removing their reactions
 * leaves enough in the list of latest reactors. Refilling it from Postgres is not part of one more reaction.
 */
const growing = { rows: 48, posts: 24, others: 10 };

const largePosts = new WeakMap<Site, Promise<Post>>();

/** The large post of a run. Every measurement on it removes its own reactions. */
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

/** One more reaction on a post with very many, compared with posts with `others`. */
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
      series: reactionSeries(stage, target),
      verify: () => verifyReactions(site, target, stage),
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
  title: 'a reaction on a post with very many',
  proof: 'P9',
  goal: { growth: 1.2, of: 'both' },
  versions: 2,
  // A reaction removed before it was set would change nothing, so few requests may overtake one another.
  connectionsMax: 8,
  prepare: largePostAgainst(growing.others),
};

/** Compared with posts whose list of users is full. The difference is the cost of the number of reactions alone. */
export const largePostAlone: Scenario = {
  ...largePost,
  name: 'reaction_full',
  title: 'the same, compared with a post whose list of users is full',
  prepare: largePostAgainst(150),
};

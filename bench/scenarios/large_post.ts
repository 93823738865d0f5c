/** For goal P9: measures one more reaction on a post with very many reactions, compared with posts that have few. */
import { fillReactions, untilFlushed } from '../service/fill_reactions.js';
import { makePeople, makePosts, type Person, type Post } from '../service/population.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';
import { heart, reactionSeries, type Stage, verifyReactions } from './hearts.js';
import type { Prepared, Scenario, Side } from './scenario.js';

/**
 * Both sides make `rows` reactions. On one side, `rows` people react once each on the large post. On the other side, a
 * few people react on each of `posts` posts. With few rows, the list of latest reactors never becomes empty when
 * reactions are removed, so the scenario does not measure how the list is refilled from Postgres.
 */
const growing = { rows: 48, posts: 24, others: 10 };

const largePosts = new WeakMap<Service, Promise<Post>>();

function theLargePost(service: Service, watch: RedisWatch, count: number): Promise<Post> {
  const make = async () => {
    const [owner] = (await makePeople(service, 'large_owner', 1)) as [Person];
    const [post] = (await makePosts(service, owner, 1)).posts as [Post];
    await fillReactions(watch, post.id, heart, count);
    return post;
  };
  const made = largePosts.get(service) ?? make();
  largePosts.set(service, made);
  return made;
}

/**
 * Measures the cost of one more reaction on a post with very many reactions. The baseline is a reaction on posts that
 * have `others` reactions.
 */
function largePostAgainst(others: number) {
  return async (...[service, watch, sizes]: Parameters<Scenario['prepare']>): Promise<Prepared> => {
    const people = await makePeople(service, `fan_${others}`, growing.rows);
    const few = (await makePosts(service, people[0] as Person, growing.posts)).posts;
    for (const { id } of few) await fillReactions(watch, id, heart, others);
    const large = await theLargePost(service, watch, sizes.reactions);
    await untilFlushed(watch, service.signal);
    const target = service.front;
    const side = (stage: Stage): Side => ({
      target,
      series: reactionSeries(stage, target),
      verify: () => verifyReactions(service, target, stage),
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
  // Few connections keep the calls in order. Otherwise some calls would remove a reaction that is not set yet, which
  // changes nothing.
  connectionsMax: 8,
  prepare: largePostAgainst(growing.others),
};

/**
 * Compares with posts that have enough reactions to fill their list of latest reactors, so that the compared posts
 * differ only in the number of reactions.
 */
export const largePostAlone: Scenario = {
  ...largePost,
  name: 'reaction_full',
  title: 'the same, compared with a post whose list of users is full',
  prepare: largePostAgainst(150),
};

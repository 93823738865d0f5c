/** P2: reactions set and removed on posts in Redis, compared with the same script on a bare server. */
import { isDeepStrictEqual } from 'node:util';
import { expect } from '../../src/loadtest/client.js';
import { makePeople, makePosts, type Person, type Post } from '../site/population.js';
import type { Target } from '../site/site.js';
import { reactionSeries, type Stage, setHeart, verifyReactions } from './hearts.js';
import type { Scenario, Side } from './scenario.js';

export const reactions: Scenario = {
  name: 'reactions',
  title: 'a reaction set and removed on hot posts',
  proof: 'P2',
  goal: { share: 0.8 },
  // The reaction and the count.
  versions: 2,
  timed: true,
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
    await setHeart(site.front, post, one);
    const shown = await setHeart(site.front, post, two);
    const bare = await setHeart(floor, post, two);
    expect(isDeepStrictEqual(bare, shown), 'the answer of the floor has another payload');
    const side = (target: Target): Side => ({
      target,
      series: reactionSeries(stage, target),
      verify: () => verifyReactions(site, target, stage),
    });
    return { base: side(floor), subject: side(site.front), labels: ['floor', 'service'] };
  },
};

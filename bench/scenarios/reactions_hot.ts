/**
 * For goal P2: measures setting and removing reactions on hot posts, compared with a minimal server that calls the same
 * script.
 */
import { isDeepStrictEqual } from 'node:util';
import { expect } from '../../src/loadtest/client.js';
import { makePeople, makePosts, type Person, type Post } from '../service/population.js';
import type { Target } from '../service/service.js';
import { reactionSeries, type Stage, setHeart, verifyReactions } from './hearts.js';
import type { Scenario, Side } from './scenario.js';

export const reactions: Scenario = {
  name: 'reactions',
  title: 'a reaction set and removed on hot posts',
  proof: 'P2',
  goal: { share: 0.8 },
  versions: 2,
  timed: true,
  async prepare(service, _watch, sizes) {
    const people = await makePeople(service, 'reactor', 20);
    const { posts } = await makePosts(service, people[0] as Person, sizes.posts);
    const stage: Stage = { posts, people, others: 0 };
    const floor = await service.startFloor({
      kind: 'react',
      posts: Object.fromEntries(posts.map(({ id, external_id }) => [external_id, id])),
      people: Object.fromEntries(people.map(({ token, ...person }) => [token, person])),
    });
    const [post, [one, two]] = [posts[0] as Post, people as [Person, Person]];
    await setHeart(service.front, post, one);
    const shown = await setHeart(service.front, post, two);
    const bare = await setHeart(floor, post, two);
    expect(isDeepStrictEqual(bare, shown), 'the answer of the floor has another payload');
    const side = (target: Target): Side => ({
      target,
      series: reactionSeries(stage, target),
      verify: () => verifyReactions(service, target, stage),
    });
    return { base: side(floor), subject: side(service.front), labels: ['floor', 'service'] };
  },
};

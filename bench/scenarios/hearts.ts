/** Hearts on posts: what scenarios of reactions load, and how they see that every heart was counted once. */
import { expect, inParallel } from '../../src/loadtest/client.js';
import type { Call } from '../../src/loadtest/series.js';
import type { Person, Post } from '../site/population.js';
import type { Site, Target } from '../site/site.js';
import { ask, type Side } from './scenario.js';

export const heart = '❤';
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
export const setHeart = (target: Target, post: Post, { token }: Person) =>
  ask<Payload>(target, pathOf(post), { token, body: { emoji: heart } });
export const removeHeart = (target: Target, post: Post, { token }: Person) =>
  ask<Payload>(target, `${pathOf(post)}?emoji=${emoji}`, { verb: 'DELETE', token });

const heartsOf = ({ reactions }: Payload) => reactions.find((reaction) => reaction.emoji === heart);

/** Posts of one channel, the people who react, and how many hearts others have put on each post. */
export interface Stage {
  readonly posts: readonly Post[];
  readonly people: readonly Person[];
  readonly others: number;
}

/** One call a person and post: all are set in one pass, and removed in the next. */
export function reactionSeries({ posts, people }: Stage, { baseUrl }: Target): Side['series'] {
  const path = '/api/posts/{1}/reactions';
  const calls: Call[] = [
    { verb: 'POST', path, token: '{2}', body: JSON.stringify({ emoji: heart }) },
    { verb: 'DELETE', path: `${path}?emoji=${emoji}`, token: '{2}' },
  ];
  const rows = people.flatMap(({ token }) => posts.map(({ external_id }) => [external_id, token]));
  return { origin: baseUrl, calls, rows };
}

/** Takes back what a load left, then sets and removes one: each answer and every count must be right to one. */
export async function verifyReactions(
  site: Site,
  target: Target,
  { posts, people, others }: Stage,
): Promise<void> {
  await inParallel(posts.length * people.length, 16, (i) => {
    const post = posts[i % posts.length] as Post;
    return removeHeart(site.front, post, people[Math.floor(i / posts.length)] as Person);
  });
  const [person] = people as [Person];
  const counts = await inParallel(posts.length, 16, async (i) => {
    const post = posts[i] as Post;
    const after = heartsOf(await setHeart(target, post, person));
    expect(after?.user_ids[0] === person.externalId, 'a reaction does not show who set it');
    const back = await removeHeart(target, post, person);
    expect(back.my_reactions.length === 0, 'a reaction that was removed is still there');
    return [after?.count, heartsOf(back)?.count ?? 0];
  });
  for (const [after, back] of counts)
    expect(
      after === others + 1 && back === others,
      `${back} hearts are counted on a post that has ${others}`,
    );
}

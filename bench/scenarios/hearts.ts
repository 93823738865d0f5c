/** A load that several scenarios share: people react on posts. Checks that every reaction was counted exactly once. */
import { expect, inParallel } from '../../src/loadtest/client.js';
import type { Call } from '../../src/loadtest/series.js';
import type { Person, Post } from '../service/population.js';
import type { Service, Target } from '../service/service.js';
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

/** The posts of one channel, the people who react, and the number of reactions that each post already has. */
export interface Stage {
  readonly posts: readonly Post[];
  readonly people: readonly Person[];
  readonly others: number;
}

/**
 * Makes one call per person and post. The first pass over all people and posts sets all reactions, the next pass
 * removes all reactions, and so on.
 */
export function reactionSeries({ posts, people }: Stage, { baseUrl }: Target): Side['series'] {
  const path = '/api/posts/{1}/reactions';
  const calls: Call[] = [
    { verb: 'POST', path, token: '{2}', body: JSON.stringify({ emoji: heart }) },
    { verb: 'DELETE', path: `${path}?emoji=${emoji}`, token: '{2}' },
  ];
  const rows = people.flatMap(({ token }) => posts.map(({ external_id }) => [external_id, token]));
  return { origin: baseUrl, calls, rows };
}

/**
 * Removes the reactions that the load has set. Then sets and removes one reaction, and checks each answer and each
 * count.
 */
export async function verifyReactions(
  service: Service,
  target: Target,
  { posts, people, others }: Stage,
): Promise<void> {
  await inParallel(posts.length * people.length, 16, (i) => {
    const post = posts[i % posts.length] as Post;
    return removeHeart(service.front, post, people[Math.floor(i / posts.length)] as Person);
  });
  const [person] = people as [Person];
  const counts = await inParallel(posts.length, 16, async (i) => {
    const post = posts[i] as Post;
    const after = heartsOf(await setHeart(target, post, person));
    expect(after?.user_ids[0] === person.externalId, 'a reaction does not show the user who set it');
    const back = await removeHeart(target, post, person);
    expect(back.my_reactions.length === 0, 'a removed reaction is still there');
    return [after?.count, heartsOf(back)?.count ?? 0];
  });
  for (const [after, back] of counts)
    expect(
      after === others + 1 && back === others,
      `${back} hearts are counted on a post that has ${others}`,
    );
}

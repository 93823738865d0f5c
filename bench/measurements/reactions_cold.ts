/**
 * Measures reactions on cold posts. Redis has no data of these posts, so the first call on each post reads from
 * Postgres. For comparison, the same calls are then repeated on the same posts, which are then hot.
 */

import { expect, inParallel } from '../../src/loadtest/client.js';
import { makeHistogram, note, percentilesOf } from '../../src/loadtest/latency_percentiles.js';
import type { Finding } from '../../src/loadtest/results.js';
import { costsBetween, known, median, readCosts } from '../measure.js';
import { setHeart } from '../scenarios/hearts.js';
import { untilFlushed } from '../service/fill_reactions.js';
import { makePeople, makePosts, type Person, type Post } from '../service/population.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

const width = 16;

async function forgetPosts({ client, keys }: RedisWatch, posts: readonly Post[]): Promise<void> {
  const prefixes = new Map(posts.map(({ id }) => [keys.acted(id), id]));
  const found: string[] = [];
  for (let cursor = '0'; ; ) {
    const [next, names] = await client.scan(cursor, 'MATCH', '*:acted:*', 'COUNT', 10_000);
    for (const name of names) if (prefixes.has(name.slice(0, name.lastIndexOf(':') + 1))) found.push(name);
    if (next === '0') break;
    cursor = next;
  }
  expect(found.length > 0, 'Redis has no reactions on the posts to remove');
  for (const name of [...posts.map(({ id }) => keys.post(id)), ...found]) await client.unlink(name);
}

interface Turn {
  readonly cpu: ReturnType<typeof costsBetween>;
  readonly p50: number;
  readonly p99: number;
}

/** Sets one reaction of one person on each post. Checks that every answer counts this reaction. */
async function turn(
  service: Service,
  watch: RedisWatch,
  posts: readonly Post[],
  person: Person,
  others: number,
): Promise<Turn> {
  await untilFlushed(watch, service.signal);
  const histogram = makeHistogram();
  const before = await readCosts(service, watch, [service.front.pid]);
  await inParallel(posts.length, width, async (i) => {
    const since = performance.now();
    const { reactions } = await setHeart(service.front, posts[i] as Post, person);
    note(histogram, performance.now() - since);
    expect(
      reactions[0]?.count === others + 1,
      `${reactions[0]?.count} hearts are counted on a post instead of ${others + 1}`,
    );
  });
  await untilFlushed(watch, service.signal);
  const { p50, p99 } = percentilesOf(histogram);
  return {
    cpu: costsBetween(before, await readCosts(service, watch, [service.front.pid]), posts.length),
    p50,
    p99,
  };
}

export const reactionsCold: Measurement = {
  name: 'reactions_cold',
  async run(service, watch, { posts: count, rounds, progress }): Promise<Finding[]> {
    const people = await makePeople(service, 'cold_person', 2 * rounds + 1);
    const { posts } = await makePosts(service, people[0] as Person, count * 4);
    await turn(service, watch, posts, people[0] as Person, 0);
    const turns = { hot: [] as Turn[], cold: [] as Turn[] };
    for (let i = 0; i < rounds; i++) {
      progress(`reactions_cold: round ${i + 1} of ${rounds}`);
      const others = 2 * i + 1;
      await untilFlushed(watch, service.signal);
      await forgetPosts(watch, posts);
      turns.cold.push(await turn(service, watch, posts, people[others] as Person, others));
      turns.hot.push(await turn(service, watch, posts, people[others + 1] as Person, others + 1));
    }
    return (['hot', 'cold'] as const).map((which) => {
      const of = (pick: (turn: Turn) => number) => median(turns[which].map(pick));
      const us = (name: 'server' | 'redis' | 'postgres') => of(({ cpu }) => cpu[name]);
      return {
        key: `us of a reaction on a ${which} post`,
        proof: '',
        what: `a reaction on each of ${posts.length} ${which} posts, ${width} at a time`,
        measured: `${us('server').toFixed(0)} µs CPU of the front, Redis ${us('redis').toFixed(0)} µs, Postgres ${us('postgres').toFixed(0)} µs; p50 ${of(({ p50 }) => p50).toFixed(1)}, p99 ${of(({ p99 }) => p99).toFixed(1)} ms`,
        value: known(us('server')),
        goal: '',
        met: null,
      };
    });
  },
};

/** Quickly adds many reactions to a post, by calling the reaction script directly for made-up people. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inParallel } from '../../src/loadtest/client.js';
import { Runner } from '../../src/redis/scripts/scripts.js';
import { pack } from '../../src/store/core/codec.js';
import { partitionOfPost, postNumber } from '../../src/store/core/keys.js';
import { postKeys } from '../../src/store/core/script_keys.js';
import type { RedisWatch } from './redis_watch.js';

/** The first user id of the made-up people. No real person has such a high id. */
const strangersFrom = 5_000_000_000;
const width = 128;

/**
 * Adds reactions of `count` made-up people to a post. The result is the same as if real people had reacted, because in
 * a public channel anyone may react and the script reads no record of the person.
 */
export async function fillReactions(
  { connection, keys }: RedisWatch,
  post: number,
  emoji: string,
  count: number,
): Promise<void> {
  const runner = new Runner({
    connection,
    recover: () => Promise.reject(new Error('Redis was restarted in mid-run')),
  });
  const partition = partitionOfPost(post);
  const at = postKeys(keys, post);
  const place = [String(post), String(partition), String(postNumber(post))];
  await inParallel(count, width, async (i) => {
    const user = String(strangersFrom + i);
    const result = await runner.call(
      'posts/react',
      partition,
      {
        ...at,
        user_ticket: keys.ticket(`${keys.acted(post)}${user}`),
        request: keys.request(partition, `${post}.${emoji}.${user}`),
      },
      {
        token: '',
        reaction: pack([...place, 'set', emoji, user]),
        external: createHash('md5').update(user).digest(),
        known: '-',
      },
    );
    expect(result.status === 'ok' && result.changed, `a reaction was answered with ${result.status}`);
  });
}

export async function untilFlushed(watch: RedisWatch, signal: AbortSignal): Promise<void> {
  while ((await watch.journalLength()) > 0) await sleep(50, undefined, { signal });
}

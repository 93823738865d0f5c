import { z } from 'zod';
import { openEvents } from '../../actions/events.js';
import { watchReactions } from '../../actions/post_stream.js';
import { postOf } from '../../actions/posts.js';
import { fail } from '../../errors.js';
import { defineEndpoint, replied } from '../../server/endpoint.js';
import { storeLimits as limits } from '../../store/limits.js';
import { postStreamEvents } from '../../wire/stream_results.js';

const wrong = `ids of 1 to ${limits.posts_watched_max} posts, separated by commas`;
const posts = z
  .string({ error: ({ input }) => (input === undefined ? 'given' : wrong) })
  .transform((text) => [...new Set(text.split(','))])
  .refine((names) => names.every((name) => name !== '') && names.length <= limits.posts_watched_max, {
    error: wrong,
  });

/** Streams the reactions on the posts that a page shows. Events of chats are on `/api/stream`. */
export const openPostsStream = defineEndpoint({
  verb: 'GET',
  path: '/api/stream/posts',
  summary: `Streams the reactions to up to ${limits.posts_watched_max} posts as server-sent events (\`post_reactions\`): first the current reactions, then each change.`,
  params: z.object({ posts: posts.describe('Ids or external ids, separated by commas') }),
  contentType: 'text/event-stream',
  events: postStreamEvents,
  errors: ['post_not_found'],
  handler: async ({ user, store, request, onRevoked }, p) => {
    const ids = p.posts.map((name) => postOf(store, name));
    // Checks access before the stream starts, because an error can then still be sent as an ordinary answer.
    await Promise.all(ids.map((id) => store.posts.find(id, { id: user.id, isBot: false })));
    const leave = store.streams.join(user.id) ?? fail('too_many_requests', { retry_after: 1 });
    const stops: Array<() => void> = [];
    const { write, close, isOver } = openEvents(store.time, request, onRevoked, () => {
      for (const stop of stops) stop();
      leave();
    });
    stops.push(store.streams.onLeave(close));
    write('retry: 1000\n\nevent: ready\ndata: {}\n\n');
    try {
      for (const id of ids) {
        const stop = await watchReactions(store, user, id, (data) =>
          write(`event: post_reactions\ndata: ${JSON.stringify(data)}\n\n`),
        );
        if (isOver()) stop();
        else stops.push(stop);
      }
    } catch (error) {
      close();
      throw error;
    }
    return replied;
  },
});

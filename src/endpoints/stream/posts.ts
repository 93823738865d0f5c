import { z } from 'zod';
import { watchReactions } from '../../actions/post_stream.js';
import { postOf } from '../../actions/posts.js';
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { defineEndpoint, replied } from '../../server/endpoint.js';

const wrong = `ids of 1 to ${limits.posts_watched_max} posts, separated by commas`;
const posts = z
  .string({ error: ({ input }) => (input === undefined ? 'given' : wrong) })
  .transform((text) => [...new Set(text.split(','))])
  .refine((names) => names.every((name) => name !== '') && names.length <= limits.posts_watched_max, {
    error: wrong,
  });

/** For pages that show several posts. Events of chats come on `/api/stream`. */
export const openPostsStream = defineEndpoint({
  verb: 'GET',
  path: '/api/stream/posts',
  summary: `Streams \`post_reactions\` of up to ${limits.posts_watched_max} posts as server-sent events: the current reactions, then each change.`,
  params: z.object({ posts: posts.describe('Ids or external ids, separated by commas') }),
  contentType: 'text/event-stream',
  errors: ['post_not_found'],
  handler: async ({ user, store, request, onRevoked }, p) => {
    const ids = p.posts.map((name) => postOf(store, name));
    // Checks access before the stream starts, so that the error is an ordinary answer.
    await Promise.all(ids.map((id) => store.posts.find(id, { id: user.id, isBot: false })));
    const leave = store.streams.join(user.id) ?? fail('too_many_requests', { retry_after: 1 });
    const stream = request.openStream();
    const stops: Array<() => void> = [];
    let ended = false;
    const end = () => {
      if (ended) return;
      ended = true;
      clearInterval(keepAlive);
      for (const stop of stops) stop();
      forget();
      leave();
    };
    const close = () => {
      end();
      stream.close();
    };
    const forget = onRevoked(close);
    const write = (text: string) => {
      // A reader that is too slow is disconnected. It reconnects and gets the current reactions.
      if (!ended && !stream.write(text)) close();
    };
    const keepAlive = setInterval(() => write(': \n\n'), limits.stream_keepalive_ms);
    request.onAbort(end);
    stops.push(store.streams.onLeave(close));
    write('retry: 1000\n\nevent: ready\ndata: {}\n\n');
    try {
      for (const id of ids) {
        const stop = await watchReactions(store, user, id, (data) =>
          write(`event: post_reactions\ndata: ${JSON.stringify(data)}\n\n`),
        );
        if (ended) stop();
        else stops.push(stop);
      }
    } catch (error) {
      close();
      throw error;
    }
    return replied;
  },
});

import { z } from 'zod';
import { openEvents } from '../../actions/events.js';
import { watchReactions } from '../../actions/post_stream.js';
import { postName, postOf } from '../../actions/posts.js';
import { personViewer } from '../../actions/reading.js';
import { asSeenBy } from '../../actions/shown_messages.js';
import { fail } from '../../errors.js';
import { defineEndpoint, replied } from '../../server/endpoint.js';
import type { Change, StreamListener } from '../../store/chats/streams.js';
import { messageFlags } from '../../store/core/codec.js';
import { type ChatRef, isDirect } from '../../store/core/keys.js';
import { storeLimits as limits } from '../../store/limits.js';
import type { Time } from '../../time.js';
import { type Viewer, viewMessage } from '../../view/messages.js';
import { viewStranger } from '../../view/users.js';
import { boolean, optional } from '../../wire/schema.js';
import { streamEvents } from '../../wire/stream_results.js';

const nameOf = (chat: ChatRef) => chat.id;

function eventOf(
  change: Change,
  viewer: Viewer,
  time: Time,
): { readonly event: string; readonly data: unknown } | null {
  const chat_id = nameOf(change.chat);
  switch (change.kind) {
    case 'gap':
      return { event: 'reset', data: { chat_id } };
    case 'd':
      return { event: 'message_deleted', data: { chat_id, message_id: Number(change.id) } };
    case 'a':
      return { event: 'callback_answer', data: { chat_id, ...change.answer } };
    case 'p': {
      // If a newer pin has replaced this pin, sends only the message id, because a later event shows the newer pin. An
      // unpin has no `pinned_message`.
      const shown = change.message && viewMessage(change.message, viewer, time);
      const pinned = change.id === '0' ? {} : { pinned_message: shown ?? { message_id: Number(change.id) } };
      return { event: 'pinned', data: { chat_id, ...pinned, notify: change.notify } };
    }
    default: {
      // If the message has been edited again or deleted meanwhile, sends nothing, because a later event reports that
      // change.
      if (!change.message) return null;
      const message = viewMessage(change.message, viewer, time);
      const notify = (change.message.record.flags & messageFlags.silent) === 0;
      return change.kind === 'n'
        ? { event: 'message', data: { ...message, notify } }
        : { event: 'edited_message', data: message };
    }
  }
}

/** Opens the event stream of a person (behaviour §11). Resumes from `Last-Event-ID`. */
export const openStream = defineEndpoint({
  verb: 'GET',
  path: '/api/stream',
  summary:
    'Streams the events of the caller’s chats as server-sent events. With `post`, also streams the reactions to that post.',
  params: z.object({
    post: optional(postName),
    background: optional(boolean).describe(
      'True for a window that is not visible. Petrel then sends notifications as if the window were closed',
    ),
  }),
  contentType: 'text/event-stream',
  events: streamEvents,
  errors: ['post_not_found'],
  handler: async ({ user, store, request, onRevoked }, p) => {
    const post = p.post === undefined ? null : postOf(store, p.post);
    // Checks access before the stream starts, because an error can then still be sent as an ordinary answer.
    if (post !== null) await store.posts.find(post, { id: user.id, isBot: false });
    if (store.streams.openOf(user.id) >= limits.streams_per_user_max)
      fail('too_many_requests', { retry_after: 1 });
    let stop: (() => void) | undefined;
    let unwatch: (() => void) | undefined;
    const finish = () => {
      stop?.();
      unwatch?.();
    };
    const { write, close, isOver, drained } = openEvents(store.time, request, onRevoked, finish);
    // Keeps the events in order, although some of them must wait until a profile is loaded.
    let order = Promise.resolve();
    const inOrder = (work: () => Promise<void> | void) => {
      order = order.then(work).catch(close);
    };
    const tell = (event: string, data: object) =>
      inOrder(() => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
    write('retry: 1000\n\n');
    const inShared: Viewer = { isBot: false, bot: null, person: user.id };
    try {
      const listener: StreamListener = {
        change(change) {
          inOrder(async () => {
            const viewer = isDirect(change.chat) ? await personViewer(store, change.chat, user) : inShared;
            const [message = null] = change.message ? await asSeenBy(store, user, [change.message]) : [];
            const event = eventOf({ ...change, message }, viewer, store.time);
            if (event)
              write(`id: ${change.cursor}\nevent: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`);
          });
        },
        membership(chat, isIn) {
          tell(isIn ? 'chat_joined' : 'chat_left', { chat_id: nameOf(chat) });
        },
        action(chat, { id, action, profile }) {
          if (id === user.id) return;
          const from = profile === null ? {} : { from: viewStranger(profile) };
          tell('chat_action', { chat_id: nameOf(chat), from_id: id, ...from, action });
        },
        draft(chat, draft) {
          tell('message_draft', { chat_id: nameOf(chat), from_id: chat.id, ...draft });
          return order.then(drained);
        },
        draftStopped: (chat, stopped) => tell('message_draft_stopped', { chat_id: nameOf(chat), ...stopped }),
        read: (chat_id, message_id) => tell('chat_read', { chat_id, message_id }),
        settings: (chat_id) => tell('chat_settings', { chat_id }),
        scheduled: (chat_id) => tell('scheduled_posts', { chat_id }),
        profile: () => tell('profile', {}),
        personDraft: (draft) => tell('chat_draft', draft),
        start(cursor) {
          inOrder(() => write(`id: ${cursor}\nevent: ready\ndata: {}\n\n`));
        },
        leave() {
          inOrder(close);
        },
      };
      stop = await store.streams.open(user.id, request.lastEventId, listener, p.background === true);
      if (post !== null) {
        unwatch = await watchReactions(store, user, post, (data) => tell('post_reactions', data));
      }
    } catch (error) {
      // The stream has already started, so the error cannot be sent. Closes the stream, so that the client reconnects.
      close();
      throw error;
    } finally {
      // If the stream has ended meanwhile, ends the new subscriptions immediately.
      if (isOver()) finish();
    }
    return replied;
  },
});

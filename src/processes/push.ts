/** Notifications in the processes: a flusher notes who is to be told, a worker tells them. */
import { pushOf } from '../config/config.js';
import { createReceivers } from '../delivery/outbound/receivers.js';
import { makeSender } from '../delivery/outbound/send.js';
import { limits } from '../limits.js';
import { createNoter, type Noter } from '../push/noter.js';
import { createPusher } from '../push/pusher.js';
import { createVapid } from '../push/vapid.js';
import { type Backends, isLate } from './backends.js';

const late = 'some people are not told of a message: what fails is not told later';

/** Hears what a flusher writes. */
export function startNoter({ config, store, figures, troubles }: Backends): Noter {
  const noter = createNoter({
    push: store.push,
    delayMs: config.PUSH_DELAY_MS,
    onError: troubles.onDelay('notes of notifications', late, isLate),
  });
  figures.push({
    name: 'petrel_push_notes_total',
    help: 'Chats whose newest message was noted for people to be notified of, and those dropped since too many waited.',
    kind: 'counter',
    labels: ['result'],
    read: () => [
      [['noted'], noter.stats.noted],
      [['dropped'], noter.stats.dropped],
    ],
  });
  noter.start();
  return noter;
}

/** Undefined where nobody is notified. */
export function startPusher({ config, store, figures, held, troubles }: Backends) {
  const settings = pushOf(config);
  if (settings === undefined) return undefined;
  // Connections of their own: a push service that drips holds up no webhook.
  const sender = makeSender({
    guard: createReceivers(config.WEBHOOK_ALLOW_CIDRS, config.WEBHOOK_DENY_CIDRS).guard,
    deadlineMs: limits.push_deadline_ms,
    receiverConnectionsMax: limits.push_in_flight_max,
  });
  const pusher = createPusher({
    ...{ store, sender, vapid: createVapid(settings), delayMs: config.PUSH_DELAY_MS, held },
    onError: troubles.onDelay('notifications', late, isLate),
  });
  figures.push({
    name: 'petrel_pushes_total',
    help: 'Notifications by what became of them; `present`: not sent, since the person had a window open.',
    kind: 'counter',
    labels: ['result'],
    read: () => Object.entries(pusher.stats).map(([result, count]) => [[result], count] as const),
  });
  pusher.start();
  return {
    async stop() {
      await pusher.stop();
      await sender.close();
    },
  };
}

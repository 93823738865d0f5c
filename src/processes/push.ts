/** Runs push notifications. A flusher records which people to notify, and a worker sends the notifications. */
import { pushOf } from '../config/config.js';
import { createReceivers } from '../delivery/outbound/receivers.js';
import { Sender } from '../delivery/outbound/send.js';
import { pushLimits as limits } from '../push/limits.js';
import { createNoter, type Noter } from '../push/noter.js';
import { Pusher } from '../push/pusher.js';
import { createVapid } from '../push/vapid.js';
import { type Backends, isLate } from './backends.js';

const late = 'some people are not notified of a message: failed notifications are not repeated';

export function startNoter({ config, time, store, figures, troubles }: Backends): Noter {
  const noter = createNoter({
    push: store.push,
    time,
    delayMs: config.PUSH_DELAY_MS,
    onError: troubles.onDelay('notes of notifications', late, isLate),
  });
  figures.push({
    name: 'petrel_push_notes_total',
    help: 'Chats recorded for notifications, and chats dropped because too many were waiting.',
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

export function startPusher({ config, time, store, figures, held, troubles }: Backends) {
  const settings = pushOf(config);
  if (settings === undefined) return undefined;
  // Uses separate connections, so that a slow push service does not delay webhooks.
  const sender = new Sender({
    time,
    guard: createReceivers(config.WEBHOOK_ALLOW_CIDRS, config.WEBHOOK_DENY_CIDRS, time).guard,
    deadlineMs: limits.push_deadline_ms,
    receiverConnectionsMax: limits.push_in_flight_max,
  });
  const pusher = new Pusher({
    time,
    store,
    sender,
    vapid: createVapid(settings, time),
    delayMs: config.PUSH_DELAY_MS,
    held,
    onError: troubles.onDelay('notifications', late, isLate),
  });
  figures.push({
    name: 'petrel_pushes_total',
    help: 'Notifications by outcome. `present`: not sent, because the person had a window open.',
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

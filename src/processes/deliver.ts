/** The role `deliver`: pushes updates to webhooks, and finishes work that dead processes left behind. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createDeliveryMeter } from '../delivery/meter.js';
import { createReceivers } from '../delivery/outbound/receivers.js';
import { makeSender } from '../delivery/outbound/send.js';
import { createRecorder } from '../delivery/recorder.js';
import { createDeliveryWorker } from '../delivery/worker.js';
import { createManager } from '../manage/manager.js';
import { createAnswerCalls } from '../server/bot_calls.js';
import { type Backends, isLate } from './backends.js';
import { startPusher } from './push.js';
import type { Role } from './role.js';
import { traceDeliveries } from './tracing.js';

const held_look_ms = 500;

export async function startDeliver(backends: Backends): Promise<Role> {
  const {
    config,
    managementBot,
    log,
    store,
    files,
    wakeQueue,
    figures,
    troubles: { onError, onDelay },
  } = backends;
  const receivers = createReceivers(config.WEBHOOK_ALLOW_CIDRS, config.WEBHOOK_DENY_CIDRS);
  const sender = makeSender({ guard: receivers.guard });
  const recorder = createRecorder({
    append: store.attempts.append,
    onRefused: (attempt) =>
      log.error(attempt, 'Postgres refused the record of a delivery attempt: the attempt is only counted'),
    onError: onDelay(
      'records of delivery attempts',
      'the records of delivery attempts are written later',
      isLate,
    ),
  });
  const answers = createAnswerCalls({
    ...{ store, files, receivers },
    onError: onError('a method call in the answer to a delivery'),
  });
  const manager = createManager({
    ...{ store, bot: managementBot },
    onError: onDelay('the management bot', 'the management bot answers late: messages to it wait', isLate),
  });
  const meter = createDeliveryMeter();
  const traced = backends.traces && traceDeliveries(backends.traces);
  const worker = createDeliveryWorker({
    store,
    inside: (bot) => (bot === managementBot ? ({ entry }) => manager.handle(entry) : undefined),
    wakeQueue,
    // During a drill, deliveries wait here, so that no attempt counts against a receiver.
    async send(to, headers, body, signal) {
      while (backends.held() && signal?.aborted !== true)
        await sleep(held_look_ms, undefined, { ref: false });
      return sender.send(to, headers, body, signal);
    },
    service: config.HEADER_SERVICE_NAME,
    onOutcome(bot, delivery, outcome, dead, attempt) {
      recorder.note(bot, delivery, outcome, dead, attempt);
      meter.note(delivery, outcome, dead, attempt);
      traced?.(bot, delivery, outcome, dead, attempt);
      if (dead !== null)
        log.warn({ bot, update: delivery.id, reason: dead }, 'an update became a dead letter');
    },
    // A truncated answer may hold half a call, so it is ignored.
    onAnswer: (bot, delivery, { body, truncated }) =>
      truncated ? undefined : answers.run(bot, delivery, body),
    onRemoved: (bot) => log.warn({ bot }, 'webhook removed: its receiver answered 410 for 23 hours'),
    onError: onDelay(
      'delivery',
      'deliveries are late: nothing is lost, pending updates are delivered when Redis and Postgres answer again',
      isLate,
    ),
  });
  const gauge = (name: string, help: string, read: () => number) =>
    figures.push({ kind: 'gauge', name, help, read });
  gauge(
    'petrel_webhook_drains',
    'Bots whose webhook queues this process delivers.',
    () => worker.stats().drains,
  );
  gauge('petrel_webhook_open', 'Deliveries in flight.', () => worker.stats().open);
  gauge('petrel_webhook_connections', 'Connections to receivers.', () => sender.stats().connections);
  gauge(
    'petrel_webhook_attempts_waiting',
    'Records of delivery attempts not yet written to Postgres.',
    recorder.waiting,
  );
  figures.push({
    name: 'petrel_webhook_attempts_refused_total',
    help: 'Records of delivery attempts that Postgres refused because of their data. These attempts are only counted.',
    kind: 'counter',
    read: recorder.refused,
  });
  figures.push({
    name: 'petrel_webhook_answer_calls_total',
    help: 'Method calls in answers of receivers, by result. `skipped`: the update was caused by a bot.',
    kind: 'counter',
    labels: ['result'],
    read: () => [
      [['done'], answers.stats.done],
      [['refused'], answers.stats.failed],
      [['skipped'], answers.stats.skipped],
    ],
  });
  figures.push(...meter.figures);
  backends.node.parts.push(() => {
    const { drains, open } = worker.stats();
    return { deliver: { ...meter.totals(), drains, open, connections: sender.stats().connections } };
  });
  const pusher = startPusher(backends);
  await store.auth.start();
  store.sweep.start();
  recorder.start();
  worker.start();
  manager.start();
  return {
    async stop() {
      await Promise.all([worker.stop(), manager.stop(), pusher?.stop()]);
      await sender.close();
      await recorder.stop();
      await store.sweep.stop();
      await store.auth.stop();
    },
  };
}

/** The role `deliver`: pushes updates to webhooks, and sweeps up what a process that died left undone. */
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
    onRefused: (attempt) => log.error(attempt, 'Postgres refused an attempt to deliver: it is only counted'),
    onError: onDelay('attempts to deliver', 'attempts to deliver are written later', isLate),
  });
  const answers = createAnswerCalls({
    ...{ store, files, receivers },
    onError: onError('a call in the answer to a delivery'),
  });
  const manager = createManager({
    ...{ store, bot: managementBot },
    onError: onDelay('the management bot', 'the management bot is late: what it was told waits', isLate),
  });
  const meter = createDeliveryMeter();
  const traced = backends.traces && traceDeliveries(backends.traces);
  const worker = createDeliveryWorker({
    store,
    inside: (bot) => (bot === managementBot ? ({ entry }) => manager.handle(entry) : undefined),
    wakeQueue,
    // What is held waits here: no attempt is counted against a receiver.
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
    // Of half an answer nobody knows what the other half says.
    onAnswer: (bot, delivery, { body, truncated }) =>
      truncated ? undefined : answers.run(bot, delivery, body),
    onRemoved: (bot) => log.warn({ bot }, 'webhook removed: its receiver has answered 410 for 23 hours'),
    onError: onDelay(
      'delivery',
      'deliveries are late: nothing is lost, what was not acknowledged is delivered when Redis and Postgres answer in time',
      isLate,
    ),
  });
  const gauge = (name: string, help: string, read: () => number) =>
    figures.push({ kind: 'gauge', name, help, read });
  gauge('petrel_webhook_drains', 'Bots whose lease this process holds.', () => worker.stats().drains);
  gauge('petrel_webhook_open', 'Updates that are open to receivers.', () => worker.stats().open);
  gauge('petrel_webhook_connections', 'Connections to receivers.', () => sender.stats().connections);
  gauge(
    'petrel_webhook_attempts_waiting',
    'Attempts to deliver that are still to be written to Postgres.',
    recorder.waiting,
  );
  figures.push({
    name: 'petrel_webhook_attempts_refused_total',
    help: 'Attempts to deliver that Postgres refused for their data: they are only counted.',
    kind: 'counter',
    read: recorder.refused,
  });
  figures.push({
    name: 'petrel_webhook_answer_calls_total',
    help: 'Calls in answers of receivers, by result; `skipped` are those to updates that a bot caused.',
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

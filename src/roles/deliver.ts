/** The role `deliver`: pushes updates to webhooks, and sweeps up what a process that died left undone. */
import { createAnswerCalls } from '../api/bot_calls.js';
import { createReceivers } from '../delivery/receivers.js';
import { createRecorder } from '../delivery/recorder.js';
import { makeSender } from '../delivery/send.js';
import { createDeliveryWorker } from '../delivery/worker.js';
import { createManager } from '../manage/manager.js';
import { type Backends, isLate } from './backends.js';
import type { Role } from './role.js';

export async function startDeliver({
  config,
  managementBot,
  log,
  keys,
  store,
  files,
  doorbell,
  figures,
  troubles: { onError, onDelay },
}: Backends): Promise<Role> {
  const receivers = createReceivers(config.WEBHOOK_ALLOW_CIDRS);
  const sender = makeSender({ guard: receivers.guard });
  const recorder = createRecorder({
    append: store.attempts.append,
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
  const worker = createDeliveryWorker({
    store,
    inside: (bot) => (bot === managementBot ? ({ entry }) => manager.handle(entry) : undefined),
    doorbell,
    send: sender.send,
    service: config.HEADER_SERVICE_NAME,
    partitions: keys.partitions.count,
    onOutcome(bot, delivery, outcome, dead, attempt) {
      recorder.note(bot, delivery, outcome, dead, attempt);
      if (dead !== null)
        log.warn({ bot, update: delivery.id, reason: dead }, 'an update became a dead letter');
    },
    // Of half an answer nobody knows what the other half says.
    onAnswer: (bot, { id }, { body, truncated }) => (truncated ? undefined : answers.run(bot, id, body)),
    onRemoved: (bot) => log.warn({ bot }, 'webhook removed: its receiver has answered 410 for 23 hours'),
    onError: onDelay(
      'delivery',
      'deliveries are late: nothing is lost, what was not acknowledged is delivered when Redis and Postgres answer in time',
      isLate,
    ),
  });
  figures.push(
    ['petrel_webhook_drains', 'Bots whose updates this process delivers now.', () => worker.stats().drains],
    ['petrel_webhook_open', 'Updates that are open to receivers.', () => worker.stats().open],
    ['petrel_webhook_delivered', 'Updates that receivers have taken.', () => worker.stats().delivered],
    ['petrel_webhook_failed', 'Attempts to deliver that failed.', () => worker.stats().failed],
    ['petrel_webhook_answer_calls', 'Calls in answers that were run.', () => answers.stats.done],
    ['petrel_webhook_answer_calls_failed', 'Calls in answers that were refused.', () => answers.stats.failed],
    ['petrel_webhook_dead', 'Updates that were given up.', () => worker.stats().dead],
    [
      'petrel_webhook_attempts_waiting',
      'Attempts to deliver that are still to be written to Postgres.',
      recorder.waiting,
    ],
    ['petrel_webhook_connections', 'Connections to receivers.', () => sender.stats().connections],
  );
  await store.auth.start();
  store.sweep.start();
  recorder.start();
  worker.start();
  manager.start();
  return {
    async stop() {
      await Promise.all([worker.stop(), manager.stop()]);
      await sender.close();
      await recorder.stop();
      await store.sweep.stop();
      await store.auth.stop();
    },
  };
}

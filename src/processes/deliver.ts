/** Runs the role `deliver`, which pushes updates to webhooks and finishes the work of processes that died. */
import type { Send } from '../delivery/context.js';
import { createDeliveryMeter } from '../delivery/meter.js';
import { createReceivers } from '../delivery/outbound/receivers.js';
import { Sender } from '../delivery/outbound/send.js';
import { isDelivered } from '../delivery/outcome.js';
import { Recorder } from '../delivery/recorder.js';
import { createReplayer } from '../delivery/replayer.js';
import { UpdateKeeper } from '../delivery/update_keeper.js';
import { DeliveryWorker } from '../delivery/worker.js';
import { Manager } from '../manage/manager.js';
import { methods } from '../methods/methods.gen.js';
import { figuresOf } from '../obs/metrics.js';
import { createAnswerCalls } from '../server/bot_calls.js';
import { botOf, slotOf } from '../store/core/queue_ids.js';
import { type Backends, isLate } from './backends.js';
import { deliveryFigures } from './history.js';
import { startPusher } from './push.js';
import type { Role } from './role.js';
import { startScheduler } from './scheduler.js';
import { signerOf } from './signer.js';
import { traceDeliveries, traceparentOf } from './tracing.js';

const held_look_ms = 500;

const late =
  'deliveries are late: nothing is lost, pending updates are delivered when Redis and Postgres answer again';

/** Creates the component that stores delivered updates. Returns null if the setting UPDATES_DAYS is 0. */
function createKeeper({ config, time, store, figures, troubles }: Backends): UpdateKeeper | null {
  if (config.UPDATES_DAYS === 0) return null;
  const keeper = new UpdateKeeper({
    time,
    append: store.keptUpdates.append,
    onError: troubles.onDelay('delivered updates', 'delivered updates are kept later', isLate),
  });
  const help = {
    petrel_updates_unkept_total:
      'Delivered updates that UPDATES_DAYS did not keep, because they were too large or too many waited for Postgres.',
    petrel_updates_kept_waiting: 'Delivered updates that wait until UPDATES_DAYS stores them in Postgres.',
  };
  figures.push(
    ...figuresOf(help, () => ({
      petrel_updates_unkept_total: keeper.unkept(),
      petrel_updates_kept_waiting: keeper.waiting(),
    })),
  );
  return keeper;
}

/** Creates the components of the role `deliver`. `aroundSend` wraps the function that sends requests to webhooks. */
function createParts(backends: Backends, aroundSend: (send: Send) => Send, keeper: UpdateKeeper | null) {
  const { config, time, random, managementBot, log, store, files, wakeQueue, traces, troubles, held } =
    backends;
  const { onError, onDelay } = troubles;
  const receivers = createReceivers(config.WEBHOOK_ALLOW_CIDRS, config.WEBHOOK_DENY_CIDRS, time);
  const sender = new Sender({ guard: receivers.guard, time });
  const recorder = new Recorder({
    time,
    random,
    append: store.attempts.append,
    onRefused: (attempt) =>
      log.error(
        attempt,
        'Postgres refused to store a delivery attempt: the attempt is counted, but its details are lost',
      ),
    onError: onDelay(
      'records of delivery attempts',
      'the records of delivery attempts are written later',
      isLate,
    ),
  });
  const answers = createAnswerCalls({
    methods,
    store,
    files,
    receivers,
    onError: onError('a method call in the answer to a delivery'),
  });
  const manager = new Manager({
    store,
    bot: managementBot,
    onError: onDelay('the management bot', 'the management bot answers late: messages to it wait', isLate),
  });
  const meter = createDeliveryMeter(time);
  const traced = traces && traceDeliveries(traces);
  const worker = new DeliveryWorker({
    time,
    random,
    store,
    inside: (bot) => (bot === managementBot ? ({ entry }) => manager.handle(entry) : undefined),
    wakeQueue,
    // Waits until a drill (a test with a restored backup) ends instead of failing the delivery, because a failure would
    // count against the receiver.
    send: aroundSend(async (to, headers, body, signal, maySend) => {
      while (held() && signal?.aborted !== true) await time.sleep(held_look_ms, { ref: false });
      return sender.send(to, headers, body, signal, maySend);
    }),
    signer: signerOf(config),
    ...(traces && { traceparent: traceparentOf(traces) }),
    onOutcome(queue, delivery, outcome, dead, attempt) {
      const [bot, slot] = [botOf(queue), slotOf(queue)];
      recorder.note(queue, delivery, outcome, dead, attempt);
      if (keeper && outcome !== null && isDelivered(outcome) && !attempt.isReplay)
        keeper.note(attempt.owner, queue, delivery);
      meter.note(delivery, outcome, dead, attempt);
      traced?.(bot, delivery, outcome, dead, attempt);
      if (dead !== null)
        log.warn({ bot, slot, update: delivery.id, reason: dead }, 'an update became a dead letter');
    },
    // Ignores a truncated answer, because the bot method call in the answer may be incomplete.
    onAnswer: (bot, delivery, { body, truncated }) =>
      truncated ? undefined : answers.run(bot, delivery, body),
    onRemoved: (queue) =>
      log.warn(
        { bot: botOf(queue), slot: slotOf(queue) },
        'webhook removed: its receiver answered 410 for 23 hours',
      ),
    onError: onDelay('delivery', late, isLate),
  });
  return { sender, recorder, answers, manager, meter, worker };
}

function report({ figures, node }: Backends, parts: ReturnType<typeof createParts>): void {
  const { sender, recorder, answers, meter, worker } = parts;
  figures.push(
    ...figuresOf(
      {
        petrel_webhook_drains: 'Bots whose webhook queues this process delivers.',
        petrel_webhook_open: 'Deliveries in flight.',
        petrel_webhook_connections: 'Connections to receivers.',
        petrel_webhook_attempts_waiting: 'Records of delivery attempts not yet written to Postgres.',
        petrel_webhook_attempts_refused_total:
          'Records of delivery attempts that Postgres refused because of their data. These attempts are only counted.',
      },
      () => ({
        petrel_webhook_drains: worker.stats().drains,
        petrel_webhook_open: worker.stats().open,
        petrel_webhook_connections: sender.stats().connections,
        petrel_webhook_attempts_waiting: recorder.waiting(),
        petrel_webhook_attempts_refused_total: recorder.refused(),
      }),
    ),
    {
      name: 'petrel_webhook_answer_calls_total',
      help: 'Method calls in answers of receivers, by result. `skipped`: the update was caused by a bot.',
      kind: 'counter',
      labels: ['result'],
      read: () => [
        [['done'], answers.stats.done],
        [['refused'], answers.stats.failed],
        [['skipped'], answers.stats.skipped],
      ],
    },
    ...meter.figures,
  );
  node.parts.push(() => {
    const { drains, open } = worker.stats();
    return { deliver: { ...meter.totals(), drains, open, connections: sender.stats().connections } };
  });
  node.figures.push(() => deliveryFigures(meter.totals().outcomes));
}

export async function startDeliver(
  backends: Backends,
  _stopping?: AbortSignal,
  aroundSend: (send: Send) => Send = (send) => send,
): Promise<Role & { readonly worker: DeliveryWorker }> {
  const { store } = backends;
  const keeper = createKeeper(backends);
  const parts = createParts(backends, aroundSend, keeper);
  report(backends, parts);
  const { sender, recorder, manager, worker } = parts;
  const onError = backends.troubles.onDelay('replays', 'replays into webhooks pause', isLate);
  const replayer = createReplayer({ store, time: backends.time, onError });
  const pusher = startPusher(backends);
  await store.auth.start();
  store.sweep.start();
  recorder.start();
  worker.start();
  manager.start();
  replayer.start();
  const scheduler = startScheduler(backends);
  return {
    worker,
    async stop() {
      await Promise.all([replayer.stop(), scheduler.stop()]);
      await Promise.all([worker.stop(), manager.stop(), pusher?.stop()]);
      await sender.close();
      await recorder.stop();
      await keeper?.stop();
      await store.sweep.stop();
      await store.auth.stop();
    },
  };
}

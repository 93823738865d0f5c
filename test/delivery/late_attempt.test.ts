/**
 * Tests delivery attempts that come too late: the lease ends or the webhook changes while the worker reads the bot or
 * waits for a connection. Also tests requests that are in flight when the webhook is deleted.
 */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { DrainContext } from '../../src/delivery/context.js';
import { Drain } from '../../src/delivery/drain.js';
import { createHeldBytes } from '../../src/delivery/held_bytes.js';
import { deliveryLimits as limits } from '../../src/delivery/limits.js';
import { createSlots } from '../../src/delivery/slots.js';
import { systemRandom } from '../../src/random.js';
import type { Bot } from '../../src/store/core/control.js';
import type { UpdateEntry } from '../../src/store/updates/queues.js';
import type { Advanced, Delivery, Lease, Step } from '../../src/store/webhooks/deliveries.js';
import type { Hint } from '../../src/store/webhooks/hints.js';
import type { Webhook } from '../../src/store/webhooks/webhooks.js';
import { VirtualTime } from '../support/virtual_time.js';

const bot = 100_001;
const nowMs = 1_800_000_000_000;
const profile = { id: bot, name: 'Bot', username: 'bot', names: {} };

const webhook = (path: string): Webhook => ({
  ...{ url: `https://receiver.example/${path}`, secretToken: null, certificate: null, address: null },
  ...{ maxConnections: 10, version: 1, signing: ['whsec_AAAA'] },
});

const entry = {
  ...{ updateId: 1, shownId: 1, kind: 'inline_query', id: '1', from: { id: 5, n: 'A' } },
  question: { query: '', offset: '', chat_type: 'private' },
} as unknown as UpdateEntry;
const delivery: Delivery = { id: '1', chat: 'a', made: nowMs, bytes: 10, entry, fields: [] };
const nothing = { again: [], more: false, now: nowMs, gone: null, dropped: 0, wait: null };
const lease = {
  ...{ ...nothing, fresh: [delivery], after: '1' },
  ...{ fence: '1', since: '0', hook: 1, safe: '0', probes: 0 },
} as unknown as Lease;

/**
 * Starts a drain with one update. The drain first loads the bot, and waits for this until the test calls `find`. With
 * `silent`, neither Redis nor the receiver answers. With `hangs`, the receiver never answers, and the request ends only
 * when it is aborted. With `waits`, the request waits for a connection until the test calls `connect`.
 */
function drainOne({ silent = false, hangs = false, waits = false } = {}) {
  const time = new VirtualTime();
  const sent: string[] = [];
  const steps: Step[] = [];
  const steppedAt: number[] = [];
  const signals: AbortSignal[] = [];
  const never = new Promise<never>(() => undefined);
  let [hook, path, isSilent] = [1, 'first', silent];
  let hear: (hint: Hint) => void = () => undefined;
  let find: () => void = () => undefined;
  const found = new Promise<Bot>((resolve) => {
    find = () => resolve(profile as unknown as Bot);
  });
  let connect: () => void = () => undefined;
  const connected = new Promise<void>((resolve) => {
    connect = resolve;
    if (!waits) resolve();
  });
  let lookUps = 0;
  const context = {
    ...{
      slots: createSlots(10),
      heldBytes: createHeldBytes(1024),
      signer: { service: 'Service' },
      time,
      random: systemRandom,
      mayStay: () => true,
    },
    store: {
      auth: { botById: () => (lookUps++ === 0 ? found : profile) },
      webhooks: { find: async () => webhook(path) },
      deliveries: {
        listen: async (_: number, listener: typeof hear) => {
          hear = listener;
          return () => undefined;
        },
        advance: async (_: number, step: Step) => {
          steps.push(step);
          steppedAt.push(time.monotonic());
          if (isSilent) return never;
          return {
            ...nothing,
            wait: hook === 0 ? limits.webhook_grace_ms : null,
            fresh: [],
            after: '1',
            hook,
            left: step.leave !== 'stay',
            wake: false,
          } as unknown as Advanced;
        },
      },
    },
    send: async (
      { target }: { readonly target: { readonly path: string } },
      _headers: unknown,
      _body: unknown,
      signal: AbortSignal,
      maySend: () => boolean,
    ) => {
      await connected;
      if (!maySend()) return { kind: 'failed', reason: 'closed', message: '', latencyMs: 0 };
      sent.push(target.path);
      signals.push(signal);
      if (silent) return never;
      if (hangs) {
        await once(signal, 'abort');
        return { kind: 'failed', reason: 'closed', message: '', latencyMs: 0 };
      }
      return { kind: 'answered', status: 200, retryAfterMs: undefined, body: Buffer.alloc(0) };
    },
    onError: (error: unknown) => {
      throw error;
    },
  } as unknown as DrainContext;
  const drain = new Drain(
    context,
    { queue: bot, owner: 7 },
    webhook(path),
    lease,
    time.monotonic(),
    false,
    false,
  );
  return {
    ...{ time, sent, steps, steppedAt, signals, drain },
    find: () => find(),
    connect: () => connect(),
    change: (to: string) => {
      [hook, path] = [2, to];
    },
    /** Deletes the webhook, and sends the drain a hint about the change. */
    remove: () => {
      hook = 0;
      hear({ changed: true, copy: null });
    },
    /** Sends the drain a hint that the webhook has changed again. From then on, Redis does not answer. */
    silence: () => {
      isSilent = true;
      hear({ changed: true, copy: null });
    },
  };
}

const parked = (steps: readonly Step[]) => steps.flatMap(({ failed }) => failed);
const putBack = [{ chat: 'a', delayMs: 0, tries: 0, ids: ['1'] }];

test('a drain loads the bot before it sends an update', async () => {
  const { time, sent, steps, drain, find } = drainOne();
  await time.advance(0);
  expect(sent).toEqual([]);
  find();
  await time.advance(100);
  expect(sent).toEqual(['/first']);
  expect(steps.flatMap(({ acked }) => acked.map(({ delivery: { id } }) => id))).toEqual(['1']);
  await Promise.all([drain.stop(0), time.advance(100)]);
});

test.each([
  ['half of a lease', limits.webhook_lease_ms / 2],
  ['a whole lease', limits.webhook_lease_ms],
])('a process that was frozen for %s sends no request under its old lease', async (_, ms) => {
  const { time, sent, drain, find } = drainOne();
  await time.advance(0);
  time.freeze(ms);
  // The process resumes. The reply of Redis arrives before the overdue timers fire.
  find();
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toEqual([]);
  await Promise.all([drain.stop(0), time.advance(limits.webhook_lease_ms)]);
  expect(sent).toEqual([]);
});

test('if a process was frozen while a request waited for a connection, the process does not send the request under its old lease', async () => {
  const { time, sent, drain, find, connect } = drainOne({ waits: true });
  find();
  await time.advance(0);
  time.freeze(limits.webhook_lease_ms / 2);
  // The process resumes. The connection opens before the overdue timers fire.
  connect();
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toEqual([]);
  await Promise.all([drain.stop(0), time.advance(limits.webhook_lease_ms)]);
  expect(sent).toEqual([]);
});

test.each([
  ['the bot was read', false],
  ['the request waited for a connection', true],
])(
  'if the webhook changed while %s, the update is put back and not sent to the former receiver',
  async (_, waits) => {
    const { time, sent, steps, drain, find, connect, change } = drainOne({ waits });
    await time.advance(0);
    if (waits) find();
    change('second');
    await time.advance(limits.webhook_renew_ms + 1);
    expect(steps).toHaveLength(1);
    find();
    connect();
    await time.advance(100);
    expect(sent).toEqual([]);
    expect(parked(steps)).toEqual(putBack);
    await Promise.all([drain.stop(0), time.advance(100)]);
  },
);

test('a worker with a slow clock aborts its request before the lease ends on the clock of Redis', async () => {
  const { time, sent, signals, drain, find } = drainOne({ silent: true });
  await time.advance(0);
  find();
  await time.advance(0);
  expect(sent).toEqual(['/first']);
  // The clock of the worker is 1 % slower than the clock of Redis.
  await time.advance(limits.webhook_lease_ms * 0.98);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  await time.advance(limits.webhook_lease_ms * 0.01);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  await drain.done;
});

const aborted = (signals: readonly AbortSignal[]) => signals.map((signal) => signal.aborted);

/**
 * Starts a drain whose receiver does not answer, and deletes the webhook during the request. Also returns the time
 * between the last renewal of the lease and the deletion.
 */
async function removeDuringRequest() {
  const made = drainOne({ hangs: true });
  made.find();
  await made.time.advance(100);
  expect([made.sent.length, made.steps.length]).toEqual([1, 1]);
  made.remove();
  await made.time.advance(0);
  expect(made.steps.map(({ leave }) => leave)).toEqual(['stay', 'stay']);
  return { ...made, leasedMs: made.time.monotonic() - (made.steppedAt[0] as number) };
}

test('after the webhook was deleted, a worker releases its lease when it has aborted its requests', async () => {
  const { time, steps, signals, drain } = await removeDuringRequest();
  await time.advance(limits.webhook_grace_ms - 1);
  expect(aborted(signals)).toEqual([false]);
  expect(steps).toHaveLength(2);
  await time.advance(1);
  expect(aborted(signals)).toEqual([true]);
  expect(steps.map(({ leave }) => leave)).toEqual(['stay', 'stay', 'now']);
  expect(await drain.done).toBe(false);
});

test('after the webhook was deleted, a worker aborts its requests before the deadline, even if Redis does not answer', async () => {
  const { time, steps, signals, drain, silence } = await removeDuringRequest();
  await time.advance(limits.webhook_grace_ms / 2);
  silence();
  await time.advance(limits.webhook_grace_ms / 2 - 1);
  expect(steps).toHaveLength(3);
  expect(aborted(signals)).toEqual([false]);
  await time.advance(1);
  expect(aborted(signals)).toEqual([true]);
  await Promise.all([drain.done, time.advance(limits.webhook_lease_ms)]);
});

test('a step that finds that the webhook was deleted does not renew the lease', async () => {
  const { time, drain, silence, leasedMs } = await removeDuringRequest();
  silence();
  let isOver = false;
  drain.done.then(() => {
    isOver = true;
  });
  await time.advance(limits.webhook_lease_ms - limits.webhook_lease_margin_ms - leasedMs - 1);
  expect(isOver).toBe(false);
  await time.advance(1);
  expect(isOver).toBe(true);
});

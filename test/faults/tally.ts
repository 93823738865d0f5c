/**
 * Provides a webhook receiver for many bots, and people who write to these bots. The receiver keeps only the next
 * expected number of each chat, and one histogram of the latencies of all chats. Its memory therefore does not grow
 * with the number of updates. The text of a message is `<number> <time at which it was sent>`.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { build, type Histogram } from 'hdr-histogram-js';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';

export interface Lane {
  readonly user: TestUser;
  readonly bot: TestBot;
  said: number;
}

export interface Counts {
  /** The number of updates that were accepted in order. Repeated updates are not counted. */
  readonly taken: number;
  readonly doubled: number;
  /** The number of updates that were accepted before an earlier update of the same chat. */
  readonly early: number;
}

export interface Tally {
  settings(bot: TestBot): { readonly url: string; readonly certificate: string };
  readonly counts: Counts;
  /** The times in ms from sending to arrival, since `latencies` was last called. */
  latencies(): Histogram;
  takenOf(lane: Lane): number;
  close(): Promise<void>;
}

export const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
const nameOf = (bot: number, user: number) => `${bot}.${user}`;
export const newHistogram = () =>
  build({ lowestDiscernibleValue: 1, highestTrackableValue: 600_000, numberOfSignificantValueDigits: 3 });

/** `answer` returns the status with which the receiver answers a person’s update to a bot. */
export async function startTally(
  answer: (bot: number, user: number) => number | Promise<number> = () => 200,
): Promise<Tally> {
  const next = new Map<string, number>();
  const counts = { taken: 0, doubled: 0, early: 0 };
  let latencies = newHistogram();
  const receiver = await startReceiver(certificate, async ({ url }, response, body) => {
    const { message } = JSON.parse(body.toString());
    const [number, saidAt] = message.text.split(' ').map(Number);
    const bot = Number(url?.slice(1));
    const status = await answer(bot, message.chat.id);
    // The text `/start` has no time, so it is not counted.
    if (status === 200 && saidAt !== undefined) {
      const name = nameOf(bot, message.chat.id);
      const due = next.get(name) ?? 0;
      if (number < due) counts.doubled++;
      else {
        counts[number === due ? 'taken' : 'early']++;
        next.set(name, number + 1);
        latencies.recordValue(Math.max(1, Math.round(performance.now() - saidAt)));
      }
    }
    response.writeHead(status).end();
  });
  return {
    settings: ({ id }) => ({
      url: `https://127.0.0.1:${receiver.port}/${id}`,
      certificate: certificate.cert,
    }),
    counts,
    latencies() {
      const taken = latencies;
      latencies = newHistogram();
      return taken;
    },
    takenOf: ({ bot, user }) => next.get(nameOf(bot.id, user.id)) ?? 0,
    close: () => receiver.close(),
  };
}

export async function openLanes(service: Service, bots: number, people: number): Promise<Lane[]> {
  const users = await Promise.all(Array.from({ length: people }, () => service.newUser('person')));
  const made = await Promise.all(
    Array.from({ length: bots }, () => service.newBot(users[0] as TestUser, 'counted')),
  );
  const lanes = made.flatMap((bot) => users.map((user) => ({ user, bot, said: 0 })));
  // Opens ten chats at a time. Otherwise calls would wait too long for connections to Postgres.
  for (let i = 0; i < lanes.length; i += 10)
    await Promise.all(lanes.slice(i, i + 10).map(({ user, bot }) => service.openChat(user, bot)));
  return lanes;
}

/**
 * Sends the next message of a chat. Throws if the outcome is unknown, which does not happen under the loads of these
 * tests.
 */
export async function say(service: Service, lane: Lane): Promise<void> {
  const path = `/api/chats/${lane.bot.id}/messages`;
  const text = `${lane.said} ${Math.round(performance.now())}`;
  const front = lane.user.id % service.fronts.length;
  await resultOf(service.app(lane.user, 'POST', path, { text }, front));
  lane.said++;
}

/**
 * Each lane (a chat of a person with a bot) sends a message every `everyMs` until `signal` aborts. The start times of
 * the lanes are evenly spread. `calls` records the duration of each call in ms.
 */
export async function talk(
  service: Service,
  lanes: readonly Lane[],
  everyMs: number,
  signal: AbortSignal,
  calls?: Histogram,
): Promise<void> {
  // Removes the limit on listeners, because each waiting chat adds a listener to this signal. With the default limit,
  // Node would print a warning.
  setMaxListeners(0, signal);
  await Promise.all(
    lanes.map(async (lane, i) => {
      for (let due = performance.now() + (everyMs * i) / lanes.length; ; due += everyMs) {
        await sleep(Math.max(0, due - performance.now()), undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return;
        const began = performance.now();
        await say(service, lane);
        calls?.recordValue(Math.max(1, Math.round(performance.now() - began)));
      }
    }),
  );
}

/** Returns how many messages of the given chats have not arrived, or arrived out of order. */
export const missing = (tally: Tally, lanes: readonly Lane[]): number =>
  lanes.reduce((sum, lane) => sum + lane.said - Math.min(lane.said, tally.takenOf(lane)), 0) +
  tally.counts.early;

/**
 * A receiver for many bots, and people who write to them, that keep counts alone, however many updates there are: the number that
 * each chat comes to next, and how long updates took. What a person says is `<number> <when it was said>`.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { build, type Histogram } from 'hdr-histogram-js';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';

/** Who writes to which bot. */
export interface Lane {
  readonly user: TestUser;
  readonly bot: TestBot;
  /** What was said and acknowledged so far. */
  said: number;
}

export interface Counts {
  /** taken for the first time, each in its turn */
  readonly taken: number;
  /** taken again */
  readonly doubled: number;
  /** taken before one that had been said earlier, or without it */
  readonly early: number;
}

export interface Tally {
  /** What `setWebhook` is to be given for a bot. */
  settings(bot: TestBot): { readonly url: string; readonly certificate: string };
  readonly counts: Counts;
  /** ms from being said to arriving, since `latencies` was last called */
  latencies(): Histogram;
  /** How many of a lane came in order. */
  takenOf(lane: Lane): number;
  close(): Promise<void>;
}

export const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
const nameOf = (bot: number, user: number) => `${bot}.${user}`;
export const newHistogram = () =>
  build({ lowestDiscernibleValue: 1, highestTrackableValue: 600_000, numberOfSignificantValueDigits: 3 });

/** `answer` gives the status for an update of a person to a bot. */
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
    // A person who starts a bot says nothing else than that.
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

/** So many bots, each with as many people who have started it. */
export async function openLanes(service: Service, bots: number, people: number): Promise<Lane[]> {
  const users = await Promise.all(Array.from({ length: people }, () => service.newUser('person')));
  const made = await Promise.all(
    Array.from({ length: bots }, () => service.newBot(users[0] as TestUser, 'counted')),
  );
  const lanes = made.flatMap((bot) => users.map((user) => ({ user, bot, said: 0 })));
  // All at once would wait longer for connections to Postgres than a call may take.
  for (let i = 0; i < lanes.length; i += 10)
    await Promise.all(lanes.slice(i, i + 10).map(({ user, bot }) => service.openChat(user, bot)));
  return lanes;
}

/** Says one thing, again until it is acknowledged: no load here meets a fault of a front, so that a call is applied or refused. */
export async function say(service: Service, lane: Lane): Promise<void> {
  const path = `/api/chats/${lane.bot.id}/messages`;
  const text = `${lane.said} ${Math.round(performance.now())}`;
  const front = lane.user.id % service.fronts.length;
  await resultOf(service.app(lane.user, 'POST', path, { text }, front));
  lane.said++;
}

/** Has each lane say something each `everyMs`, spread evenly, until `signal`; `calls` hears how long each call took, in ms. */
export async function talk(
  service: Service,
  lanes: readonly Lane[],
  everyMs: number,
  signal: AbortSignal,
  calls?: Histogram,
): Promise<void> {
  // Each lane that rests listens to it.
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

/** What of these lanes was said and has not arrived, or not in order. */
export const missing = (tally: Tally, lanes: readonly Lane[]): number =>
  lanes.reduce((sum, lane) => sum + lane.said - Math.min(lane.said, tally.takenOf(lane)), 0) +
  tally.counts.early;

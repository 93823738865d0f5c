/**
 * Measures how many updates several pollers of one bot process, compared with one poller (decision 0067). A poller
 * spends a fixed time on each update, like a bot that waits for a database or another service.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { call, expect, inParallel, makePair, WrongAnswer } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import { plainWire } from '../load/plain_wire.js';
import { known, median } from '../measure.js';
import { makePeople, openChats, type Person } from '../service/population.js';
import { cpuSeconds } from '../service/processes.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

/** How many pollers are measured. The first number is the baseline. */
const counts = [1, 2, 4] as const;
const people_count = 200;
const updates_per_poller = 2_000;
/** How long a poller works on an update, in ms. */
const work_ms = 2;
const goal = 0.85;

interface Update {
  readonly update_id: number;
  readonly message: { readonly text: string; readonly chat: { readonly id: number } };
}

interface Bot {
  readonly url: string;
  readonly id: number;
  readonly people: readonly Person[];
}

/** Sends `count` messages. The people take turns. The text of a message is its sequence number in its chat. */
async function fill({ front, signal }: Service, { id, people }: Bot, count: number): Promise<void> {
  const wire = await plainWire(front.baseUrl, 64);
  let fault: WrongAnswer | undefined;
  const path = `/api/chats/${id}/messages`;
  // Each person has only one call in flight, so that the messages of a chat are sent in order.
  const send = (i: number) => {
    const { token } = people[i % people.length] as Person;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ text: `${Math.floor(i / people.length)}` });
    return new Promise<void>((resolve) => {
      wire.send({ method: 'POST', path, headers, body }, (status, why) => {
        if (status !== 200) fault ??= new WrongAnswer(`a message failed with ${status} ${why}`);
        resolve();
      });
    });
  };
  await inParallel(Math.min(64, people.length), 64, async (line) => {
    for (let person = line; person < people.length; person += 64)
      for (let i = person; i < count && !fault; i += people.length) await send(i);
  });
  await wire.close();
  signal.throwIfAborted();
  if (fault) throw fault;
}

/** Polls with `getUpdates` until `done`. Works on each update before the next poll confirms it. */
async function poll({ url }: Bot, name: string, take: (update: Update) => void, done: () => boolean) {
  for (let offset = 0; ; ) {
    const query = `offset=${offset}&timeout=1&consumer=${name}`;
    const updates = await call<readonly Update[]>(`${url}/getUpdates?${query}`);
    if (updates.length === 0 && done()) return;
    await sleep(updates.length * work_ms);
    for (const update of updates) take(update);
    offset = (updates.at(-1)?.update_id ?? offset - 1) + 1;
  }
}

/** Returns the updates per second, and the CPU time per update in µs of the front and Redis together. */
async function drainWith(service: Service, bot: Bot, pollers: number) {
  const count = pollers * updates_per_poller;
  await fill(service, bot, count);
  const next = new Map<number, number>();
  let [left, last] = [count, 0];
  const take = ({ message: { text, chat } }: Update) => {
    const number = next.get(chat.id) ?? 0;
    expect(text === `${number}`, `the update ${text} of a chat came instead of ${number}`);
    next.set(chat.id, number + 1);
    left--;
    last = performance.now();
  };
  const cpu = () => cpuSeconds(service.front.pid) + cpuSeconds(service.parts.redis);
  const [began, spent] = [performance.now(), cpu()];
  await Promise.all(
    Array.from({ length: pollers }, (_, i) => poll(bot, `worker-${i}`, take, () => left === 0)),
  );
  return { rate: (count * 1_000) / (last - began), cpu: ((cpu() - spent) * 1e6) / count };
}

export const consumers: Measurement = {
  name: 'consumers',
  async run(service, _, { rounds, progress }): Promise<Finding[]> {
    const { front, adminToken } = service;
    const pair = await makePair(front.baseUrl, adminToken, 'consumers');
    const people = await makePeople(service, 'consumers_person', people_count);
    await openChats(service, pair, people);
    const bot: Bot = { url: `${front.baseUrl}/bot${pair.bot.token}`, id: pair.bot.id, people };
    const started = await call<readonly Update[]>(`${bot.url}/getUpdates?offset=-1`);
    await call(`${bot.url}/getUpdates?offset=${(started.at(-1)?.update_id ?? 0) + 1}`);
    service.unpin();
    const all = new Map<number, Array<Awaited<ReturnType<typeof drainWith>>>>(
      counts.map((count) => [count, []]),
    );
    for (let round = 1; round <= rounds; round++)
      for (const count of counts) {
        progress(`consumers: ${count}, round ${round} of ${rounds}`);
        all.get(count)?.push(await drainWith(service, bot, count));
      }
    service.repin();
    const of = (count: number) => all.get(count) ?? [];
    const rateOf = (count: number) => median(of(count).map(({ rate }) => rate));
    const shareOf = (count: number) =>
      median(of(count).map(({ rate }, round) => rate / (count * (of(1)[round]?.rate ?? Number.NaN))));
    const worst = Math.min(...counts.map(shareOf));
    const rates = counts.map(
      (count) => `${count}: ${rateOf(count).toFixed(0)}/s (${shareOf(count).toFixed(2)})`,
    );
    const cpu = counts.map((count) => median(of(count).map((each) => each.cpu)).toFixed(0)).join(', ');
    return [
      {
        key: 'rate of several pollers',
        proof: '',
        what: `updates that 1, 2 and 4 pollers of a bot process, ${work_ms} ms each: rate compared with N times one poller`,
        measured: `${rates.join(', ')}; µs CPU of front and Redis per update: ${cpu}`,
        value: known(worst),
        goal: `≥ ${goal.toFixed(2)} N`,
        met: Number.isNaN(worst) ? null : worst >= goal,
      },
    ];
  },
};

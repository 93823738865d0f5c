/**
 * Kills a worker and Redis while each bot has three webhook routes. No update is lost, each goes to its route, and each
 * chat stays in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Arrival, keepBooks } from '../delivery/world.js';
import { nothingWrong } from '../support/ledger.js';
import { createRole, type RoleProcess } from '../support/role_process.js';
import { type Service, startService } from '../support/service.js';
import { durableRedis } from './backends.js';
import { amount, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually, type World } from './world.js';

let service: Service;
let redis: Awaited<ReturnType<typeof durableRedis>>;
let workers: readonly [RoleProcess, RoleProcess];

beforeAll(async () => {
  redis = await durableRedis();
  const extraEnv = { PARTITIONS: '16', WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' };
  service = await startService({ fronts: 2, redis, extraEnv });
  workers = [service.deliver, createRole('deliver', async () => service.env)];
  await workers[1].start();
});
afterAll(async () => {
  await workers?.[1].stop();
  await service?.stop();
});

/**
 * The routes in order. The first takes the groups, the second takes half of the people, and the third takes the rest.
 */
const names = ['groups', 'half', 'rest'] as const;

/** Gives every bot the three routes, each with a receiver of its own. */
async function routeAll(world: World, answerMs: number) {
  const half = world.users.slice(0, 3).map(({ id }) => id);
  const listed = { groups: world.groups, half, rest: undefined };
  const expected = (chat: number) =>
    world.groups.includes(chat) ? 'groups' : half.includes(chat) ? 'half' : 'rest';
  const astray: string[] = [];
  const taken = { groups: 0, half: 0, rest: 0 };
  const closing: Array<() => Promise<void>> = [];
  let held = Promise.resolve();
  let open = 0;
  for (const name of names) {
    const books = new Map<number, Awaited<ReturnType<typeof keepBooks>>>();
    for (const { id } of world.bots) {
      const made = await keepBooks(async ({ body, chat }: Arrival) => {
        world.hear(id, JSON.parse(body.toString()));
        if (chat !== undefined) taken[name]++;
        if (chat !== undefined && expected(chat) !== name) astray.push(`${chat} on ${name}`);
        open++;
        await sleep(answerMs);
        await held;
        open--;
        return 200;
      });
      books.set(id, made);
      closing.push(() => made.close());
    }
    const receiverOf = (bot: number) => {
      const { url, certificate } = books.get(bot) as Awaited<ReturnType<typeof keepBooks>>;
      return { url, certificate };
    };
    const chats = listed[name] && { chat_ids: listed[name] };
    await world.push(({ id }) => ({ name, ...receiverOf(id), ...chats }), 'setWebhookRoute');
  }
  return {
    astray,
    taken,
    open: () => open,
    /** Makes the receivers answer nothing until the returned function is called. */
    hold(): () => void {
      let release = () => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    close: () => Promise.all(closing.map((each) => each())),
  };
}

test(
  'killing workers and Redis under load loses no update of three routes and keeps the order of each chat',
  async ({ onTestFinished }) => {
    const world = await createWorld(service);
    const { astray, taken, open, hold, close } = await routeAll(world, 20);
    onTestFinished(() => void close());
    const ended = new AbortController();
    const loading = world.load({
      ...{ count: Number.POSITIVE_INFINITY, restMs: 100, signal: ended.signal },
      front: (lane, tries) => (lane + tries) % 2,
    });
    const more = async (count: number) => {
      const before = world.ledger.acknowledged.length;
      await eventually(
        `${count} calls acknowledged`,
        () => world.ledger.acknowledged.length - before > count,
        40_000,
      );
    };
    const rounds = amount(2, 20);
    for (let round = 0; round < rounds; round++) {
      await more(50);
      const worker = workers[round % 2] as RoleProcess;
      const release = hold();
      await eventually('requests are open', () => open() > 0);
      await worker.kill();
      release();
      await worker.start();
      await more(50);
      await redis.kill();
      await sleep(200);
      await redis.start();
    }
    await more(50);
    const least = () => Math.min(...Object.values(taken));
    await eventually('each route has taken updates', () => least() > 20, 60_000);
    ended.abort();
    await loading;
    const verdict = await world.settled(60_000);
    report('', 'workers and Redis killed, three routes', { rounds, taken, ...verdict }, [
      nothingLost(verdict),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(verdict.acknowledged).toBeGreaterThan(200);
    expect(astray).toEqual([]);
  },
  patienceMs,
);

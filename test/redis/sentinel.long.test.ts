/**
 * Tests the whole service on a Redis with Sentinels. The master is killed, and a former master returns as a replica.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkRedis } from '../../src/redis/check.js';
import { RedisConnection } from '../../src/redis/connection.js';
import { openClient } from '../../src/redis/target.js';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';
import { type FreshSentinels, freshSentinels } from '../support/sentinels.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { ready_ms_max } from '../support/times.js';

let watched: FreshSentinels;
let service: Service;
let owner: TestUser;
let bot: TestBot;
let pushed: TestBot;
const delivered: string[] = [];
let receiver: Awaited<ReturnType<typeof startReceiver>>;

const target = () => ({ url: watched.masterUrl, sentinels: watched.sentinels });

beforeAll(async () => {
  watched = await freshSentinels();
  service = await startService({
    redis: watched,
    fronts: 2,
    extraEnv: { PARTITIONS: '8', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
  });
  owner = await service.newUser('olga');
  [bot, pushed] = [await service.newBot(owner, 'b'), await service.newBot(owner, 'p')];
  for (const each of [bot, pushed]) await service.openChat(owner, each);
  const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
  receiver = await startReceiver(certificate, (_, response, body) => {
    delivered.push(JSON.parse(body.toString()).message?.text);
    response.writeHead(200).end();
  });
  const url = `https://127.0.0.1:${receiver.port}/`;
  await resultOf(service.bot(pushed, 'setWebhook', { url, certificate: certificate.cert }));
}, 90_000);
afterAll(async () => {
  await service?.stop();
  await receiver?.close();
});

const say = (to: TestBot, text: string, front = 0): Promise<Answer> =>
  service.app(owner, 'POST', `/api/chats/${to.id}/messages`, { text }, front);

async function eventually(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  for (const end = performance.now() + 60_000; !(await holds()); await sleep(20))
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
}

test('a client asks the Sentinels for the master, and uses the master', async () => {
  const { warnings } = await checkRedis(target());
  expect(warnings).toEqual([expect.stringContaining('min-replicas-to-write')]);
  const client = openClient(target(), { protocol: 2 });
  expect(await client.info('server')).toContain(`tcp_port:${watched.nodes[0].port}`);
  client.disconnect();
  const unknown = { ...target(), url: target().url.replace('@petrel', '@nobody') };
  await expect(checkRedis(unknown, 1_000)).rejects.toThrow(/the master nobody of 3 Sentinels cannot be used/);
});

test('after a master is killed under traffic, replicated changes are kept, and no id is given out twice', async () => {
  await resultOf(say(bot, 'before'));
  await resultOf(say(pushed, 'pushed before'));
  await eventually('a delivery', () => delivered.includes('pushed before'));
  await watched.caughtUp();
  const idsOf: [number[], number[]] = [[], []];
  const refusals = new Set<number>();
  let busy = true;
  const talk = async (front: 0 | 1) => {
    for (let round = 0; busy; round++) {
      const { status, body } = await say(bot, `talk ${front} ${round}`, front);
      if (status === 200) idsOf[front].push(body.result.message_id);
      else {
        refusals.add(status);
        expect(body.parameters).toEqual({ retry_after: 1 });
        await sleep(20);
      }
    }
  };
  const traffic = Promise.all([talk(0), talk(1)]);
  await eventually('traffic', () => idsOf.every((ids) => ids.length > 10));
  const former = Math.max(...idsOf.flat());
  await watched.nodes[0].kill();
  await watched.replaced(0);
  await eventually('both fronts use the new master', () =>
    idsOf.every((ids) => ids.some((id) => id > former + 10_000)),
  );
  busy = false;
  await traffic;
  expect([...refusals].filter((status) => status !== 503)).toEqual([]);
  expect(new Set(idsOf.flat()).size).toBe(idsOf.flat().length);
  const history = await itemsOf(
    service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=100&before=21`),
  );
  expect(history.map(({ text }: { text: string }) => text)).toContain('before');
}, 180_000);

test('after the failover, long polls are woken and webhooks are delivered', async () => {
  const took: number[] = [];
  for (let round = 0; round < 3; round++) {
    const updates = await resultOf(service.bot(bot, 'getUpdates', { timeout: 0, offset: -1 }, 1));
    const waiting = service.bot(bot, 'getUpdates', { offset: updates.at(-1).update_id + 1, timeout: 20 }, 1);
    await sleep(300);
    await resultOf(say(bot, `wake up ${round}`));
    const said = performance.now();
    const texts = (await resultOf(waiting)).map(({ message }: { message: { text: string } }) => message.text);
    expect(texts).toEqual([`wake up ${round}`]);
    took.push(performance.now() - said);
  }
  expect(Math.min(...took)).toBeLessThan(1_100);
  await resultOf(say(pushed, 'pushed after'));
  await eventually('a delivery', () => delivered.includes('pushed after'));
});

test('if a failover happens while a connection asks Sentinels for the master, the connection uses the new master', async () => {
  const servers = await freshSentinels();
  const [stopped = 0] = servers.sentinelPids;
  const connections = Array.from(
    { length: 40 },
    (_, n) =>
      new RedisConnection({ url: { url: servers.masterUrl, sentinels: servers.sentinels }, name: `c${n}` }),
  );
  try {
    await Promise.all(connections.map((connection) => connection.ready(ready_ms_max)));
    const ids = await Promise.all(connections.map(({ client }) => client.client('ID')));
    // Requests to this Sentinel wait for a second. Meanwhile, another Sentinel starts the failover.
    process.kill(stopped, 'SIGSTOP');
    await openSentinel((sentinel) => sentinel.call('SENTINEL', 'FAILOVER', 'petrel'), servers.sentinels[1]);
    for (const id of ids) {
      await sleep(75);
      await servers.nodes[0].client.call('CLIENT', 'KILL', 'ID', id);
    }
    await eventually('every connection works again', () => connections.every((each) => each.reachable()));
  } finally {
    process.kill(stopped, 'SIGCONT');
    await Promise.all(connections.map((connection) => connection.close()));
    await servers.stop();
  }
}, 180_000);

/** Only runs with PETREL_TEST_REDIS, such as `npm run test:cluster`, include the test below. */
const long = process.env.PETREL_TEST_REDIS !== undefined;

if (long)
  test('no node writes to a former master that returns as a replica', async () => {
    await watched.nodes[0].start();
    await eventually('a replica', async () =>
      /^role:slave[\s\S]*master_link_status:up/m.test(await watched.nodes[0].client.info('replication')),
    );
    const last = (await resultOf(say(bot, 'on the second'))).message_id;
    await watched.caughtUp();
    // Requests a failover repeatedly. Sentinels refuse a failover while another failover is running, and abandon a
    // failover if they have heard too little from the replica.
    const request = () =>
      openSentinel((sentinel) => sentinel.call('SENTINEL', 'FAILOVER', 'petrel')).catch(() => undefined);
    await request();
    const requests = setInterval(request, 8_000);
    await watched.replaced(1).finally(() => clearInterval(requests));
    // The former master accepts writes until Sentinels have made it a replica. These writes are lost.
    await eventually('the first node is the master again', async () => {
      const { status, body } = await say(bot, 'on the first again');
      return status === 200 && body.result.message_id > last + 10_000;
    });
  }, 240_000);

async function openSentinel<T>(
  work: (client: ReturnType<typeof openClient>) => Promise<T>,
  url = watched.sentinels[0],
): Promise<T> {
  const client = openClient(url as string, { protocol: 2 });
  return work(client).finally(() => client.disconnect());
}

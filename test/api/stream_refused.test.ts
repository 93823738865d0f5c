import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { eventually } from '../clients/event_source.js';
import { freshRedis } from '../support/servers.js';
import { type Service, startService, type TestUser } from '../support/service.js';

let service: Service;
const agents: Agent[] = [];

beforeAll(async () => {
  // Uses a single Redis server, because the first test freezes Redis. In a Redis Cluster, only one server would freeze,
  // and the keys of the other servers would stay available.
  service = await startService({ combined: true, redis: await freshRedis() });
});
afterAll(async () => {
  for (const agent of agents) agent.destroy().catch(() => undefined);
  await service?.stop();
});

/** Opens a stream. `text` holds the data received so far. `over` settles when the service ends the stream. */
async function open(user: TestUser) {
  const dispatcher = new Agent({ bodyTimeout: 0 });
  agents.push(dispatcher);
  const headers = { authorization: `Bearer ${user.token}` };
  const { statusCode, body } = await request(`${service.fronts[0].url}/api/stream`, { dispatcher, headers });
  const received = { text: '' };
  body.setEncoding('utf8');
  body.on('data', (chunk: string) => {
    received.text += chunk;
  });
  const over = new Promise<void>((resolve) => {
    body.on('close', () => resolve());
    body.on('error', () => resolve());
  });
  return { statusCode, received, over, cut: () => dispatcher.destroy() };
}

test('if an event stream fails to start, it is ended, so that the client reconnects', async () => {
  const user = await service.newUser('ann');
  expect((await service.app(user, 'GET', '/api/me')).status).toBe(200);
  process.kill(service.redis.pid, 'SIGSTOP');
  try {
    const stream = await open(user);
    expect(stream.statusCode).toBe(200);
    await stream.over;
    expect(stream.received.text).not.toContain('event: ready');
  } finally {
    process.kill(service.redis.pid, 'SIGCONT');
  }
}, 30_000);

test('the number of open event streams per person is limited', async () => {
  const [user, other] = [await service.newUser('ann'), await service.newUser('bob')];
  const streams = [];
  for (let n = 0; n < limits.streams_per_user_max; n++) streams.push(await open(user));
  expect(streams.map(({ statusCode }) => statusCode)).not.toContain(429);
  expect((await open(user)).statusCode).toBe(429);
  expect((await open(other)).statusCode).toBe(200);
  await streams[0]?.cut();
  await eventually(async () => expect((await open(user)).statusCode).toBe(200));
});

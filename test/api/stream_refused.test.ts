/** Event streams that cannot start, and the limit of streams per person. */
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { eventually } from '../clients/event_source.js';
import { type Service, startService, type TestUser } from '../support/service.js';

let service: Service;
const agents: Agent[] = [];

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  for (const agent of agents) agent.destroy().catch(() => undefined);
  await service?.stop();
});

/** Opens a stream; `text` is what arrived so far, `over` settles when the service ends the stream. */
async function open(user: TestUser) {
  const dispatcher = new Agent({ bodyTimeout: 0 });
  agents.push(dispatcher);
  const headers = { authorization: `Bearer ${user.token}` };
  const { statusCode, body } = await request(`${service.fronts[0].url}/api/stream`, { dispatcher, headers });
  const heard = { text: '' };
  body.setEncoding('utf8');
  body.on('data', (chunk: string) => {
    heard.text += chunk;
  });
  const over = new Promise<void>((resolve) => {
    body.on('close', () => resolve());
    body.on('error', () => resolve());
  });
  return { statusCode, heard, over, cut: () => dispatcher.destroy() };
}

test('a stream ends if it cannot start, so that the client reconnects', async () => {
  const user = await service.newUser('ann');
  expect((await service.app(user, 'GET', '/api/me')).status).toBe(200);
  process.kill(service.redis.pid, 'SIGSTOP');
  try {
    const stream = await open(user);
    expect(stream.statusCode).toBe(200);
    await stream.over;
    expect(stream.heard.text).not.toContain('event: ready');
  } finally {
    process.kill(service.redis.pid, 'SIGCONT');
  }
}, 30_000);

test('the number of streams is limited per person', async () => {
  const [user, other] = [await service.newUser('ann'), await service.newUser('bob')];
  const streams = [];
  for (let n = 0; n < limits.streams_per_user_max; n++) streams.push(await open(user));
  expect(streams.map(({ statusCode }) => statusCode)).not.toContain(429);
  expect((await open(user)).statusCode).toBe(429);
  expect((await open(other)).statusCode).toBe(200);
  await streams[0]?.cut();
  await eventually(async () => expect((await open(user)).statusCode).toBe(200));
});

/** Tests that a role ends with exit code 0 after SIGTERM, even if clients, Redis or Postgres make it wait. */
import { connect } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type Service, startService } from '../support/service.js';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.stop());

test('a front that gets SIGTERM exits with code 0 even if a request has stalled and Postgres does not answer', async () => {
  const [front] = service.fronts;
  const bot = await service.newBot(await service.newUser('owner'), 'stalled');
  const socket = connect(front.port, '127.0.0.1');
  const held = new pg.Client(service.databaseUrl);
  await held.connect();
  try {
    socket.on('error', () => undefined);
    socket.write(
      `POST /bot${bot.token}/sendMessage HTTP/1.1\r\nhost: petrel\r\ncontent-length: 100\r\n\r\n{`,
    );
    const open = async () =>
      (await (await fetch(`${front.url}/metrics`)).text()).match(/^petrel_open_requests (\d+)/m);
    await expect.poll(async () => (await open())?.[1]).toBe('2');
    // Locks the table `redis_nodes`, because the last step of the process removes its row from this table.
    await held.query('begin; lock table redis_nodes in access exclusive mode');
    const began = performance.now();
    expect(await front.stop(), front.log()).toBe('exit code 0');
    expect(performance.now() - began).toBeGreaterThan(limits.shutdown_ms_max);
    expect(front.log()).toContain('did not answer during the shutdown: nothing is lost');
  } finally {
    await held.end();
    socket.destroy();
  }
}, 90_000);

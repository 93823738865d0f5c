/** Tests connections with time limits of more than ten seconds. All tests run at the same time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { limits } from '../../src/limits.js';
import type { EventStream } from '../../src/server/request.js';
import { expectAlive, headOf, RawClient, start } from './fixture.js';

describe.concurrent('', () => {
  test('a call may take longer than ten seconds if its body arrived during the token look-up', async ({
    expect,
  }) => {
    const admit = () => sleep(20).then(() => true);
    const waiting = await start(
      async (request) => {
        await sleep(13_000);
        request.reply(200, String(request.body.length));
      },
      { admit },
    );
    const client = await new RawClient(waiting.port).send(`${headOf('POST /wait', 'Content-Length: 2')}{}`);
    await client.until(() => client.closed || client.statuses.length > 0, 45_000);
    expect(client.statuses).toEqual([200]);
    client.destroy();
    await waiting.server.close();
  });

  test('an idle stream stays open even if its reader was slow for a while', async ({ expect }) => {
    let aborts = 0;
    let stream: EventStream | undefined;
    const { server, port } = await start((request) => {
      request.onAbort(() => aborts++);
      stream = request.openStream();
    });
    const client = await new RawClient(port).send(headOf('GET /stream'));
    await client.until(() => client.text.includes('\r\n\r\n'));
    client.socket.pause();
    const filler = 'x'.repeat(10_000);
    while (stream?.write(`data: ${filler}\n\n`));
    client.socket.resume();
    await sleep(limits.stream_keepalive_ms);
    expect([client.closed, aborts]).toEqual([false, 0]);
    expect(stream?.write('data: alive\n\n')).toBe(true);
    await client.until(() => client.text.includes('data: alive\n'));
    expect(client.text).toContain('data: alive\n');
    client.destroy();
    await server.close();
  });

  test('a connection is closed if a head or body does not arrive within the time limit', async ({
    expect,
  }) => {
    const { server, port, faults, seen } = await start((request) => request.reply(200, '{}'));
    const head = await new RawClient(port).send('GET /x HTTP/1.1\r\nHost:');
    const client = await new RawClient(port).send(headOf('POST /stalled', 'Content-Length: 10'), 'abc');
    const begun = Date.now();
    await Promise.all([client.untilClosed(45_000), head.untilClosed(45_000)]);
    // The timers of both engines tick every four seconds. On a busy machine, the timers may tick later.
    expect(Date.now() - begun).toBeLessThan(limits.body_idle_ms_max + 10_000);
    expect(Date.now() - begun).toBeGreaterThan(4_000);
    expect(client.statuses).toEqual([]);
    expect(seen).toEqual([]);
    await expectAlive(port);
    expect(faults).toEqual([]);
    await server.close();
  });
});

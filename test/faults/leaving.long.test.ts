/** Tests that a front shuts down while clients keep connections to this front open. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPatiently } from '../support/role_process.js';
import { type Service, startService, type TestBot } from '../support/service.js';

let service: Service;
let bot: TestBot;

beforeAll(async () => {
  service = await startService({ fronts: 2 });
  bot = await service.newBot(await service.newUser('owner'), 'kept');
});
afterAll(() => service?.stop());

const callers = 32;

/**
 * Clients that keep their connections open. A client moves to the other front when an answer announces that the first
 * front is closing.
 */
function load(signal: AbortSignal) {
  const counts = { answered: 0, closing: 0 };
  const failures: string[] = [];
  const caller = async (first: number) => {
    for (let at = first % 2; !signal.aborted; at = 1 - at) {
      // Each client has one connection, so that closing the connection ends all of the client’s requests.
      const pool = new Pool(service.fronts[at]?.url ?? '', { connections: 1, pipelining: 1 });
      for (let closes = false; !closes && !signal.aborted; ) {
        try {
          const { statusCode, headers, body } = await pool.request({
            path: `/bot${bot.token}/${counts.answered % 2 ? 'getMe' : 'getMyName'}`,
            method: 'GET',
          });
          await body.text();
          if (statusCode === 200) counts.answered++;
          else failures.push(`status ${statusCode}`);
          closes = headers.connection === 'close';
          if (closes) counts.closing++;
        } catch (error) {
          const { code, message } = error as NodeJS.ErrnoException;
          closes = true;
          // A refused connection is no failure. The front was down, so the request did not reach it and could not be
          // lost.
          if (code !== 'ECONNREFUSED') failures.push(`${code}: ${message}`);
          else await sleep(20);
        }
        await sleep(first % 4);
      }
      await pool.destroy();
    }
  };
  return { counts, failures, done: Promise.all(Array.from({ length: callers }, (_, i) => caller(i))) };
}

test.each(['0', '300'])(
  'with DRAIN_MS=%s, no request on a keep-alive connection is reset',
  async (drain) => {
    service.env.DRAIN_MS = drain;
    for (const front of service.fronts) {
      await front.stop();
      await startPatiently(front);
    }
    const ended = new AbortController();
    const { counts, failures, done } = load(ended.signal);
    let stops = 0;
    try {
      for (let round = 0; round < 2; round++) {
        for (const front of service.fronts) {
          const before = counts.answered;
          await expect.poll(() => counts.answered - before, { timeout: 30_000 }).toBeGreaterThan(200);
          expect(await front.stop()).toBe('exit code 0');
          await startPatiently(front);
          stops++;
        }
      }
    } finally {
      ended.abort();
      await done;
    }
    expect(failures).toEqual([]);
    expect(stops).toBe(4);
    expect(counts.closing).toBeGreaterThan(callers);
  },
  240_000,
);

/**
 * Measures how much CPU time idle streams of updates cost a front and Redis. Measures plain streams, and streams of
 * consumers that share a queue.
 */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inParallel } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import { known } from '../measure.js';
import { makeManyBots, makePeople, type Person } from '../service/population.js';
import { cpuSeconds, residentBytes } from '../service/processes.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

const streams = 2_000;
const consumers_per_bot = 4;
const settle_s = 6;
const measured_s = 20;
const cpu_goal_us = 2.5;
const bytes_goal = 12 * 1_024;

/** Opens a stream of updates. Returns the function that closes it. */
async function openUpdates({ front, signal }: Service, token: string, consumer: string) {
  const query = consumer === '' ? '' : `?consumer=${consumer}`;
  const request = get(`${front.baseUrl}/bot${token}/streamUpdates${query}`, { agent: false, signal });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  expect(answer.statusCode === 200, `a stream of updates answered ${answer.statusCode}`);
  // Ignores the error, because the end of the measurement closes the stream.
  answer.on('error', () => undefined).resume();
  return () => answer.destroy();
}

/** Returns the CPU time of front and Redis for all streams together, in µs per second. */
async function idleCpu({ front, parts, signal }: Service) {
  await sleep(settle_s * 1_000, undefined, { signal });
  const [began, ofFront, ofRedis] = [performance.now(), cpuSeconds(front.pid), cpuSeconds(parts.redis)];
  await sleep(measured_s * 1_000, undefined, { signal });
  const seconds = (performance.now() - began) / 1_000;
  const each = (before: number, pid: number) => ((cpuSeconds(pid) - before) * 1e6) / seconds;
  return { front: each(ofFront, front.pid), redis: each(ofRedis, parts.redis) };
}

async function measureStreams(service: Service, tokens: readonly string[], consumers: number) {
  const { front } = service;
  const [idle, before] = [await idleCpu(service), residentBytes(front.pid)];
  const closing = await inParallel(streams, 16, (i) => {
    const token = tokens[Math.floor(i / Math.max(1, consumers))] as string;
    return openUpdates(service, token, consumers === 0 ? '' : `c${i % consumers}`);
  });
  try {
    const cpu = await idleCpu(service);
    const bytes = (residentBytes(front.pid) - before) / streams;
    return { front: (cpu.front - idle.front) / streams, redis: (cpu.redis - idle.redis) / streams, bytes };
  } finally {
    for (const close of closing) close();
  }
}

export const idleStreams: Measurement = {
  name: 'idle_streams',
  async run(service, _, { progress }): Promise<Finding[]> {
    const [owner] = (await makePeople(service, 'idle_streams', 1)) as [Person];
    const tokens = (await makeManyBots(service, owner, streams)).map(({ token }) => token);
    const findings: Finding[] = [];
    for (const consumers of [0, consumers_per_bot]) {
      const what = consumers === 0 ? 'without consumers' : `of ${consumers} consumers per bot`;
      progress(`idle streams ${what}`);
      const { front, redis, bytes } = await measureStreams(service, tokens, consumers);
      findings.push({
        key: `idle streams ${what}`,
        proof: '',
        what: `each of ${streams.toLocaleString('en')} idle streams ${what}, over ${measured_s} s`,
        measured: `${front.toFixed(1)} µs CPU of the front per second, ${redis.toFixed(1)} of Redis, ${(bytes / 1_024).toFixed(1)} KB`,
        value: known(front),
        goal: `≤ ${cpu_goal_us} µs/s, ≤ ${bytes_goal / 1_024} KB`,
        met: Number.isNaN(front) ? null : front <= cpu_goal_us && bytes <= bytes_goal,
      });
    }
    return findings;
  },
};

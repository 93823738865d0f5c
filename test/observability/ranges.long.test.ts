/**
 * Tests the history that the operators' page shows. The service reads this history from a real Prometheus, which
 * scrapes the service.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exitOf, freePort } from '../../src/dev/processes.js';
import type { History } from '../../src/wire/admin_results.js';
import { findProgram } from '../support/proxies.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, startService } from '../support/service.js';

const program = findProgram('prometheus');
let service: Service;
let stopPrometheus: (() => Promise<void>) | undefined;

async function startPrometheus(port: number, target: number): Promise<void> {
  const dir = temporaryFolder();
  const config = {
    global: { scrape_interval: '1s' },
    scrape_configs: [{ job_name: 'petrel', static_configs: [{ targets: [`127.0.0.1:${target}`] }] }],
  };
  writeFileSync(join(dir, 'prometheus.yml'), JSON.stringify(config));
  const files = [`--config.file=${join(dir, 'prometheus.yml')}`, `--storage.tsdb.path=${join(dir, 'data')}`];
  const child = spawn(
    program as string,
    [...files, `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const exited = exitOf(child);
  stopPrometheus = async () => {
    child.kill('SIGTERM');
    await exited;
  };
}

beforeAll(async () => {
  if (program === undefined) return;
  const port = await freePort();
  service = await startService({
    combined: true,
    extraEnv: { PROMETHEUS_URL: `http://127.0.0.1:${port}` },
  });
  await startPrometheus(port, service.fronts[0].port);
});
afterAll(async () => {
  await stopPrometheus?.();
  await service?.stop();
});

test.skipIf(program === undefined)(
  'a front returns the figures of six hours from Prometheus',
  { timeout: 120_000 },
  async () => {
    const past = async (): Promise<History> =>
      resultOf(service.app({ token: service.adminToken }, 'GET', '/api/admin/history?range=6h'));
    const bot = await service.newBot(await service.newUser('olga'), 'counted');
    // Makes calls until the first point is complete, because a point covers 30 s.
    await expect
      .poll(
        async () => {
          await service.bot(bot, 'getMe');
          return (await past()).points.at(-1);
        },
        { timeout: 100_000, interval: 500 },
      )
      .toMatchObject({
        ...{ calls: expect.any(Number), lag_ms: expect.any(Number), redis_bytes: expect.any(Number) },
      });
    await expect
      .poll(
        async () => {
          await service.bot(bot, 'getMe');
          return (await past()).points.at(-1)?.calls ?? 0;
        },
        { timeout: 60_000, interval: 500 },
      )
      .toBeGreaterThan(10);
    const { points, ranges, span_ms } = await past();
    expect(ranges).toEqual(['1h', '6h', '24h', '7d']);
    expect(span_ms).toBe(6 * 3_600_000);
    const last = points.at(-1);
    expect(last?.times.reduce((a, b) => a + b, 0)).toBeGreaterThan(10);
    expect(last?.deliveries).toHaveProperty('delivered');
  },
);

/** Tests `petrel bench` against a running service: its calls, its report, its deletions, and its end. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { remoteNames } from '../../src/loadtest/remote_stage.js';
import { readResults } from '../../src/loadtest/results.js';
import { itemsOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
let service: Service;
let user: TestUser;
let dir: string;

onSharedService(async (running) => {
  service = running;
  dir = mkdtempSync(join(tmpdir(), 'petrel-remote-test-'));
  user = await service.newUser('loader');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function run(token: string, ...args: readonly string[]) {
  const files = ['--json', join(dir, 'found.json'), '--html', join(dir, 'found.html')];
  const all = [main, 'bench', '--url', `${service.fronts[0].url}/`, '--seconds', '0.2', ...files, ...args];
  const env = { PATH: process.env.PATH, PETREL_BENCH_TOKEN: token };
  return new Promise<{ code: number; output: string; complaint: string }>((resolve) => {
    execFile(process.execPath, all, { env, timeout: 120_000 }, (error, output, complaint) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output, complaint }),
    );
  });
}

const found = () => readResults(readFileSync(join(dir, 'found.json'), 'utf8'));

test('`petrel bench` makes each call at the given rate, and deletes its bot afterwards', async () => {
  const ended = await run(user.token, '--rates', '50', '--p99', '60000');
  expect(ended.code, ended.output + ended.complaint).toBe(0);
  const { latencies, goals, ended: why } = found();
  expect(why).toBe('');
  expect(latencies.map(({ scenario, offered, failed }) => [scenario, offered, failed])).toEqual(
    remoteNames.map((name) => [name, 50, 0]),
  );
  for (const { ms, answered, offered } of latencies) {
    expect(ms.p50).toBeGreaterThan(0);
    expect(ms.p50).toBeLessThanOrEqual(ms.p99);
    expect(answered).toBeLessThanOrEqual(offered * 1.2);
  }
  expect(goals.every(({ met }) => met === true)).toBe(true);
  const page = readFileSync(join(dir, 'found.html'), 'utf8');
  expect(page).toContain('Latency by percentile');
  expect(page + ended.output + ended.complaint).not.toContain(user.token);
  expect(page).not.toMatch(/(src|href)=|url\(|https?:\/\/(?!www\.w3\.org)/);
  const left = await itemsOf(service.app(user, 'GET', '/api/me/bots'));
  expect(left).toEqual([]);
}, 300_000);

test('`petrel bench` calls only getMe if no chat is given', async () => {
  const bot = await service.newBot(user, 'loaded');
  const slow = await run(bot.token, '--rates', '40,20', '--p99', '0.000001');
  expect(slow.code).toBe(1);
  expect(found().latencies.map(({ scenario }) => scenario)).toEqual(['getMe', 'getMe']);
  expect(found().latencies.map(({ offered }) => offered)).toEqual([20, 40]);
  expect(found().goals.map(({ met }) => met)).toEqual([true, false, true, false]);
  expect(readFileSync(join(dir, 'found.html'), 'utf8')).toContain('Latency against offered load');
  const refused = await run(bot.token.slice(0, -1) + (bot.token.endsWith('0') ? '1' : '0'));
  expect(refused.code).toBe(1);
  expect(refused.output + refused.complaint).toMatch(/answered 401/);
  expect(refused.output + refused.complaint).not.toContain(bot.token.slice(0, -1));
}, 300_000);

/** One account attacks a front in every way it can at once. The accounts of others must still be served. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openMasters } from '../support/cluster.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { amount, atMost, patienceMs, report } from './report.js';

const attackMs = amount(12_000, 60_000);
const callEveryMs = 25;
/** Passes on a busy machine too. On an idle one the value is a few ms. */
const msMax = 500;
/** The memory that one account may use in Redis: at most the queue of a bot and a day’s answers. */
const redisBytesMax = 256 * 1024 * 1024;

/** A status which proves that the attack reached the code under attack. */
const reached: Readonly<Record<string, string>> = {
  ...{ form: '400', markup: '400', range: '200', encoding: '200', chats: '200', groups: '200' },
  ...{ messages: '200', kept: '200', commands: '400', copies: '200', updates: '200' },
  ...{ guesses: '401', uploads: '429' },
};
/** The rate limits of deployed roles. Test services have none. */
const defaultRates = { RATE_PER_BOT: '2000/2', RATE_PER_PERSON: '30/1', RATE_PER_CHAT: '60/1' };

let service: Service;
let attacker: ChildProcess | undefined;
const dispatcher = new Agent({ connections: 1, pipelining: 1 });

beforeAll(async () => {
  service = await startService({ fronts: 2, extraEnv: defaultRates });
}, 60_000);
afterAll(async () => {
  attacker?.kill('SIGKILL');
  await dispatcher.close();
  await service?.stop();
});

/** With two cores, the front under test has one alone. The attacker and the front used for comparison share the other one, at the
 * lowest priority. */
function place(pid: number, core: number, yields: boolean): void {
  if (process.platform !== 'linux' || availableParallelism() < 2) return;
  spawnSync('taskset', ['-a', '-p', '-c', String(core), String(pid)], { stdio: 'ignore' });
  if (yields) spawnSync('renice', ['-n', '19', '-p', String(pid)], { stdio: 'ignore' });
}

interface Attack {
  readonly own: TestBot;
  readonly evil: TestUser;
  readonly file: string;
  readonly front: number;
}

/** Statuses that the attacker received, by kind of call. */
function attack({ own, evil, file, front }: Attack): Promise<Record<string, Record<string, number>>> {
  const child = fork(fileURLToPath(new URL('attacker.mjs', import.meta.url)));
  attacker = child;
  place(child.pid as number, 1, true);
  const statuses = new Promise<Record<string, Record<string, number>>>((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('the attacker ended')));
  });
  child.send({
    url: service.fronts[front]?.url,
    ms: attackMs,
    token: evil.token,
    botToken: own.token,
    chat: evil.id,
    file,
  });
  return statuses;
}

/** Latency of sequential `getMe` calls in ms: median and 99th percentile. */
async function timesOf(bot: TestBot, ms: number) {
  const times: number[] = [];
  for (const ends = performance.now() + ms; performance.now() < ends; await sleep(callEveryMs)) {
    const began = performance.now();
    const url = `${service.fronts[0].url}/bot${bot.token}/getMe`;
    const { statusCode, body } = await request(url, { dispatcher });
    await body.dump();
    expect(statusCode).toBe(200);
    times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] as number;
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

const usedBytes = async () => {
  const masters = openMasters(service.redis);
  const infos = await Promise.all(masters.map((redis) => redis.info('memory')));
  for (const redis of masters) redis.disconnect();
  return infos.reduce((sum, info) => sum + Number(/used_memory:(\d+)/.exec(info)?.[1]), 0);
};

test(
  'R25: an account that attacks a front in every way at once does not stop the bots of others',
  async () => {
    const [evil, good] = [await service.newUser('evil'), await service.newUser('good')];
    const [own, other] = [await service.newBot(evil, 'evil'), await service.newBot(good, 'good')];
    await service.openChat(evil, own);
    await resultOf(service.bot(other, 'getMe'));
    const form = new FormData();
    form.set('chat_id', `${evil.id}`);
    form.set('document', new Blob(['x'.repeat(10_000)]), 'file.txt');
    const sent = await fetch(`${service.fronts[0].url}/bot${own.token}/sendDocument`, {
      method: 'POST',
      body: form,
    });
    const { document } = ((await sent.json()) as { result: { document: { file_id: string } } }).result;
    const { file_path } = await resultOf(service.bot(own, 'getFile', { file_id: document.file_id }));
    const pids = [service.fronts[0].pid, service.deliver.pid, service.flush.pid];
    place(service.fronts[0].pid, 0, false);
    place(service.fronts[1]?.pid as number, 1, true);
    const idle = await timesOf(other, attackMs / 3);

    // The same load on the other front shows what the machine and Redis cost a front that is not attacked.
    const [control] = await Promise.all([
      timesOf(other, attackMs),
      attack({ own, evil, file: file_path, front: 1 }),
    ]);
    const before = await usedBytes();
    const [attacked, got] = await Promise.all([
      timesOf(other, attackMs),
      attack({ own, evil, file: file_path, front: 0 }),
    ]);
    const grown = (await usedBytes()) - before;
    report('R25', 'one account attacks in every way at once', { idle, control, attacked, grown, got }, [
      atMost('p99 of getMe of another bot, in times of its idle p99', attacked.p99 / idle.p99, 3),
      atMost('the same, in times of its p99 while another front is attacked', attacked.p99 / control.p99, 3),
      atMost('bytes that Redis grew by', grown, redisBytesMax),
    ]);

    expect(Object.keys(got).sort()).toEqual(Object.keys(reached).sort());
    for (const [name, counts] of Object.entries(got)) {
      expect(counts, name).toHaveProperty(reached[name] as string);
      expect(counts, name).not.toHaveProperty('failed');
    }
    expect(attacked.p99).toBeLessThan(msMax);
    expect(grown).toBeLessThan(redisBytesMax);
    expect([service.fronts[0].pid, service.deliver.pid, service.flush.pid]).toEqual(pids);
    for (const pid of pids) expect(() => process.kill(pid, 0)).not.toThrow();
  },
  patienceMs,
);

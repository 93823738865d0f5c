/** Tests that a front still serves other accounts while one account attacks the front in many ways simultaneously. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openMasters } from '../support/cluster.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { amount, atMost, patienceMs, report } from './report.js';

const attackMs = amount(12_000, 60_000);
const callEveryMs = 10;
/**
 * The number of calls before the measurement. The first calls are slow, because the client and the server still compile
 * their code.
 */
const warmUpCalls = 200;
/**
 * The p99 of a front under attack may be at most `timesMax` times the p99 of a bare server on the same core, plus
 * `msMax`. The bare server answers every request immediately.
 */
const timesMax = 3;
const msMax = 10;
/** The attack is measured at most this many times, because a busy machine may be slow during a single measurement. */
const triesMax = 3;
/**
 * The maximum memory that one account may use in Redis. It covers the queue of a bot, and the answers that are stored
 * for a day.
 */
const redisBytesMax = 256 * 1024 * 1024;

/** For each kind of call, a status that proves that the call reached the attacked code. */
const reached: Readonly<Record<string, string>> = {
  ...{ form: '400', markup: '400', range: '200', encoding: '200', chats: '200', groups: '200' },
  ...{ messages: '200', kept: '200', commands: '400', copies: '200', updates: '200' },
  ...{ guesses: '401', uploads: '429' },
};
/** The default rate limits of deployed roles. Without these settings, the roles of tests have no rate limits. */
const defaultRates = { RATE_PER_BOT: '2000/2', RATE_PER_PERSON: '30/1', RATE_PER_CHAT: '60/1' };

let service: Service;
let attacker: ChildProcess | undefined;
let bare: ChildProcess | undefined;
let bareUrl = '';
let database = 0;
const dispatcher = new Agent({ connections: 1, pipelining: 1 });

/** Pins the threads of a process to cores. Does nothing on systems other than Linux, or with a single core. */
function pin(pid: number, cores: string): void {
  if (process.platform !== 'linux' || availableParallelism() < 2) return;
  spawnSync('taskset', ['-a', '-p', '-c', cores, String(pid)], { stdio: 'ignore' });
}

const testedCore = '0';
const restCore = '1';
const allCores = `0-${availableParallelism() - 1}`;

/** Returns the pid of the process that starts the connections of the shared PostgreSQL server. */
async function postmasterOf(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    const { stdout } = spawnSync('ps', ['-o', 'ppid=', '-p', String(rows[0]?.pid)], { encoding: 'utf8' });
    return Number(stdout);
  } finally {
    await client.end();
  }
}

// In production, an attacker is on another machine. This test therefore runs the front under test and the bare server
// on one core, and all other processes on another core. A new process starts on the core of its parent.
beforeAll(async () => {
  database = await postmasterOf(inject('databaseUrl'));
  for (const pid of [process.pid, database]) pin(pid, restCore);
  service = await startService({ fronts: 2, extraEnv: defaultRates });
  bare = fork(fileURLToPath(new URL('bare_server.mjs', import.meta.url)));
  bareUrl = `http://127.0.0.1:${(await once(bare, 'message'))[0]}`;
  for (const pid of [bare.pid as number, service.fronts[0].pid]) pin(pid, testedCore);
});
afterAll(async () => {
  attacker?.kill('SIGKILL');
  bare?.kill('SIGKILL');
  for (const pid of [process.pid, database]) pin(pid, allCores);
  await dispatcher.close();
  await service?.stop();
});

interface Attack {
  readonly own: TestBot;
  readonly evil: TestUser;
  readonly file: string;
  readonly front: number;
}

/** Attacks the front. Returns the statuses that the attacker received, keyed by kind of call. */
function attack({ own, evil, file, front }: Attack): Promise<Record<string, Record<string, number>>> {
  const child = fork(fileURLToPath(new URL('attacker.mjs', import.meta.url)));
  attacker = child;
  spawnSync('renice', ['-n', '19', '-p', String(child.pid)], { stdio: 'ignore' });
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

function spread(times: number[]) {
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] as number;
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

async function timeOf(url: string): Promise<number> {
  const began = performance.now();
  const { statusCode, body } = await request(url, { dispatcher });
  await body.dump();
  expect(statusCode).toBe(200);
  return performance.now() - began;
}

/** Measures the latency of sequential `getMe` calls, and of calls to the bare server between them. */
async function timesOf(bot: TestBot, ms: number) {
  const [front, floor]: [number[], number[]] = [[], []];
  for (const ends = performance.now() + ms; performance.now() < ends; ) {
    front.push(await timeOf(`${service.fronts[0].url}/bot${bot.token}/getMe`));
    await sleep(callEveryMs);
    floor.push(await timeOf(bareUrl));
    await sleep(callEveryMs);
  }
  return { ...spread(front), floor: spread(floor) };
}

const usedBytes = async () => {
  const masters = openMasters(service.redis);
  const infos = await Promise.all(masters.map((redis) => redis.info('memory')));
  for (const redis of masters) redis.disconnect();
  return infos.reduce((sum, info) => sum + Number(/used_memory:(\d+)/.exec(info)?.[1]), 0);
};

test(
  'R25: while one account attacks a front in every way at the same time, the bots of other accounts keep working',
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
    for (let calls = 0; calls < warmUpCalls; calls++)
      for (const url of [`${service.fronts[0].url}/bot${other.token}/getMe`, bareUrl]) await timeOf(url);
    const idle = await timesOf(other, attackMs / 3);

    // Attacks only the other front first. The latency of the tested front then shows how much the load on the machine
    // and on Redis slows it without an attack.
    const [control] = await Promise.all([
      timesOf(other, attackMs),
      attack({ own, evil, file: file_path, front: 1 }),
    ]);
    const before = await usedBytes();
    const measure = () =>
      Promise.all([timesOf(other, attackMs), attack({ own, evil, file: file_path, front: 0 })]);
    const isSlow = ({ p99, floor }: Awaited<ReturnType<typeof timesOf>>) =>
      p99 >= timesMax * floor.p99 + msMax;
    let [attacked, got] = await measure();
    for (let tries = 1; isSlow(attacked) && tries < triesMax; tries++) [attacked, got] = await measure();
    const grown = (await usedBytes()) - before;
    report('R25', 'one account attacks in every way at once', { idle, control, attacked, grown, got }, [
      atMost('p99 of getMe of another bot, in times of its idle p99', attacked.p99 / idle.p99, 3),
      atMost('the same, in times of its p99 while another front is attacked', attacked.p99 / control.p99, 3),
      atMost(
        'the same, in times of the p99 of a bare server on the same core',
        attacked.p99 / attacked.floor.p99,
        3,
      ),
      atMost('bytes that Redis grew by', grown, redisBytesMax),
    ]);

    expect(Object.keys(got).sort()).toEqual(Object.keys(reached).sort());
    for (const [name, counts] of Object.entries(got)) {
      expect(counts, name).toHaveProperty(reached[name] as string);
      expect(counts, name).not.toHaveProperty('failed');
    }
    expect(isSlow(attacked), JSON.stringify({ idle, control, attacked })).toBe(false);
    expect(grown).toBeLessThan(redisBytesMax);
    expect([service.fronts[0].pid, service.deliver.pid, service.flush.pid]).toEqual(pids);
    for (const pid of pids) expect(() => process.kill(pid, 0)).not.toThrow();
  },
  2 * patienceMs,
);

/** One account that does everything at once which it can do to a front. Nobody else may be stopped by it. */
import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openMasters } from '../support/cluster.js';
import { resultOf, type Service, startService, type TestBot } from '../support/service.js';
import { amount, atMost, patienceMs, report } from './report.js';

const attackMs = amount(12_000, 60_000);
const callEveryMs = 25;
/** Whatever the machine does besides: a parser that one account could hold up took 3 to 5 s a call. */
const msMax = 3_000;
/** What one account may make Redis keep: the queue of a bot and a day's answers at the most. */
const redisBytesMax = 256 * 1024 * 1024;

/** An answer that shows that an attack got as far as what it attacks. */
const reached: Readonly<Record<string, string>> = {
  ...{ form: '400', markup: '400', range: '200', encoding: '200', chats: '200', groups: '200' },
  ...{ messages: '200', kept: '200', commands: '200', copies: '200', updates: '200' },
  ...{ guesses: '401', uploads: '401' },
};

let service: Service;
let attacker: ChildProcess | undefined;
const dispatcher = new Agent({ connections: 1, pipelining: 1 });

beforeAll(async () => {
  service = await startService({ fronts: 1 });
}, 60_000);
afterAll(async () => {
  attacker?.kill('SIGKILL');
  await dispatcher.close();
  await service?.stop();
});

/** How long `getMe` takes, one call after another, in ms: the middle and the 99th percentile. */
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
    const before = await usedBytes();
    const idle = await timesOf(other, attackMs / 3);

    const child = fork(fileURLToPath(new URL('attacker.mjs', import.meta.url)));
    attacker = child;
    const statuses = new Promise<Record<string, Record<string, number>>>((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', () => reject(new Error('the attacker ended')));
    });
    child.send({
      url: service.fronts[0].url,
      ms: attackMs,
      token: evil.token,
      botToken: own.token,
      chat: evil.id,
      file: file_path,
    });
    const attacked = await timesOf(other, attackMs);
    const got = await statuses;
    const grown = (await usedBytes()) - before;
    report('R25', 'one account attacks in every way at once', { idle, attacked, grown, got }, [
      atMost('p99 of getMe of another bot, in times of its idle p99', attacked.p99 / idle.p99, 3),
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

/**
 * Fills the disk of Redis or of Postgres for a while. Calls are refused cleanly, the service recovers by itself, and
 * no data is lost.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { nothingWrong } from '../support/ledger.js';
import { type Answer, itemsOf, resultOf, type Service, startService } from '../support/service.js';
import { durableRedis, ownPostgres, type Restartable } from './backends.js';
import { compareStores, drained, waitingIn } from './compare.js';
import { amount, atLeast, atMost, nothingLost, patienceMs, report } from './report.js';
import { type SmallDisk, smallDisk, supervise } from './small_disk.js';
import { createWorld, eventually } from './world.js';

let ends: Array<() => unknown> = [];
afterEach(async () => {
  for (const end of ends.reverse()) await end();
  ends = [];
});

const fullMs = amount(5_000, 60_000);
/** The maximum number of messages that fit into a page of 4,096 bytes. */
const writesPerPage = 10;
const noMounts = 'this needs a file system of its own, and mounts are not permitted here';

/** Mounts a small disk. If this machine cannot mount it, prints the reason and returns null. */
function diskOrReason(megabytes: number): SmallDisk | null {
  const disk = smallDisk(megabytes);
  if (disk === null) console.warn(`R24 was not tried: ${noMounts}`);
  return disk;
}

/** Starts a server on a small disk, and restarts the server whenever it exits. `stop` stops the server permanently. */
function onDisk(disk: SmallDisk, server: Restartable) {
  const supervised = supervise(server);
  ends.push(() => disk.close());
  return {
    supervised,
    async stop() {
      disk.free();
      await supervised.stop();
      await server.halt();
    },
  };
}

async function fillUnderLoad(service: Service, disk: SmallDisk, during: () => Promise<void>) {
  const world = await createWorld(service);
  world.poll((round) => round % 2);
  const ended = new AbortController();
  const refusals: Record<string, number> = {};
  let lastSuccess = 0;
  const loading = world.load({
    count: Number.POSITIVE_INFINITY,
    front: (lane, tries) => (lane + tries) % 2,
    signal: ended.signal,
    onAcknowledged: () => {
      lastSuccess = performance.now();
    },
    onRefusal: (status) => {
      refusals[status] = (refusals[status] ?? 0) + 1;
    },
  });
  await sleep(1_000);
  disk.fill();
  await during();
  disk.free();
  const freed = performance.now();
  await eventually('calls succeed again', () => lastSuccess > freed, 60_000);
  const resumedMs = Math.round(lastSuccess - freed);
  await sleep(1_000);
  ended.abort();
  await loading;
  const verdict = await world.settled();
  await drained(service);
  return { refusals, resumedMs, verdict, rows: await compareStores(service) };
}

test(
  'R24: while the disk of Redis is full, calls get 503 or 429, and no acknowledged message is lost',
  async ({ skip }) => {
    const disk = diskOrReason(64);
    if (disk === null) return skip(noMounts);
    const server = await durableRedis(disk.dir);
    const { supervised, stop } = onDisk(disk, server);
    const redis = { ...server, pid: server.pid, stop };
    const service = await startService({ fronts: 2, redis, extraEnv: { PARTITIONS: '16' } });
    ends.push(() => service.stop());
    const owner = await service.newUser('full');
    const bot = await service.newBot(owner, 'full');
    await service.openChat(owner, bot);
    const answers: Answer[] = [];
    const { refusals, resumedMs, verdict, rows } = await fillUnderLoad(service, disk, async () => {
      const end = performance.now() + fullMs;
      while (performance.now() < end) {
        answers.push(await service.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'x' }));
        await sleep(200);
      }
    });
    const other = Object.keys(refusals).filter((status) => status !== '503' && status !== '429');
    const figures = { refusals, restarts: supervised.restarts, ...verdict, ...rows };
    report('R24', 'the disk of Redis full', figures, [
      nothingLost(verdict),
      atMost('other refusals than 503 and 429', other.length, 0),
      atMost('differences between Redis and Postgres', rows.differences.length, 0),
      atMost('ms until calls succeed again', resumedMs, 30_000),
    ]);
    expect(other).toEqual([]);
    // Allows some writes to succeed, because a small write may still fit into the last page of the file, even after a
    // restart.
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused).not.toEqual([]);
    expect(answers.length - refused.length).toBeLessThanOrEqual(writesPerPage);
    for (const { status, body, headers } of refused) {
      expect([429, 503]).toContain(status);
      expect(body).toMatchObject({ ok: false, error_code: status });
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    }
    const sent = await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=100`));
    const accepted = answers.filter(({ status }) => status === 200).map(({ body }) => body.result.message_id);
    expect(sent.map((message: { message_id: number }) => message.message_id)).toEqual(
      expect.arrayContaining(accepted),
    );
    expect(verdict).toMatchObject(nothingWrong);
    expect(rows.differences).toEqual([]);
    expect(resumedMs).toBeLessThan(30_000);
  },
  patienceMs,
);

test(
  'R24: while the disk of Postgres is full, calls on hot data succeed, and their changes are written later',
  async ({ skip }) => {
    const disk = diskOrReason(256);
    if (disk === null) return skip(noMounts);
    const server = await ownPostgres(disk.dir);
    const { supervised, stop } = onDisk(disk, server);
    const database = { url: server.url, drop: stop };
    const service = await startService({ fronts: 2, database, extraEnv: { PARTITIONS: '16' } });
    ends.push(() => service.stop());
    const owner = await service.newUser('full');
    const control: Answer[] = [];
    let journaled = 0;
    const { refusals, resumedMs, verdict, rows } = await fillUnderLoad(service, disk, async () => {
      const end = performance.now() + fullMs;
      for (let n = 0; performance.now() < end; n++) {
        const body = { username: `full_${n}_${owner.id}_bot`, name: 'full' };
        control.push(await service.app(owner, 'POST', '/api/me/bots', body));
        await sleep(200);
      }
      journaled = await waitingIn(service, 'journal');
    });
    const figures = { refusals, restarts: supervised.restarts, journaled, ...verdict, ...rows };
    report('R24', 'the disk of Postgres full', figures, [
      nothingLost(verdict),
      atLeast('journal entries that waited', journaled, 1),
      atMost('differences between Redis and Postgres', rows.differences.length, 0),
      atMost('ms until calls succeed again', resumedMs, 30_000),
    ]);
    // Writes that still fit into existing files succeed.
    for (const { status } of control) expect([200, 503]).toContain(status);
    expect(Object.keys(refusals).filter((status) => status !== '503')).toEqual([]);
    expect(journaled).toBeGreaterThan(0);
    expect(verdict).toMatchObject(nothingWrong);
    expect(rows.differences).toEqual([]);
    await resultOf(service.newBot(owner, 'back').then((bot) => service.bot(bot, 'getMe')));
  },
  patienceMs,
);

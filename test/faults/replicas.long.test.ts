/** Tests that fronts never read outdated messages from a standby of Postgres. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openMasters } from '../support/cluster.js';
import { ask, type Pair, startPair } from '../support/postgres_pair.js';
import { freshDatabase } from '../support/servers.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { drained } from './compare.js';
import { patienceMs } from './report.js';
import { eventually } from './world.js';

let pair: Pair;
let service: Service;
let owner: TestUser;
let person: TestUser;
let bot: TestBot;

describe.each([
  ['the control database', false],
  ['a shard', true],
])('a standby of %s', (_, divided) => {
  beforeAll(async () => {
    pair = await startPair();
    await pair.addStandby();
    const control = await freshDatabase();
    service = await startService(
      divided
        ? {
            database: {
              url: control.url,
              drop: () => Promise.all([control.drop(), pair.close()]).then(() => undefined),
            },
            divided,
            extraEnv: {
              PARTITIONS: '4',
              DATABASE_SHARDS: `3=${pair.primaryUrl}`,
              DATABASE_REPLICA_URLS: `3=${pair.standbyUrl}`,
            },
          }
        : {
            database: {
              url: pair.primaryUrl,
              drop: () => Promise.all([control.drop(), pair.close()]).then(() => undefined),
            },
            extraEnv: { PARTITIONS: '4', DATABASE_REPLICA_URLS: pair.standbyUrl },
          },
    );
    owner = await service.newUser('owner');
    person = await service.newUser('person');
    bot = await service.newBot(owner, 'replica');
    await service.openChat(person, bot);
  }, patienceMs);
  afterAll(() => service?.stop());

  const send = async (text: string): Promise<number> =>
    (await resultOf(service.bot(bot, 'sendMessage', { chat_id: person.id, text }))).message_id;

  const texts = async () =>
    (await resultOf(service.app(person, 'GET', `/api/chats/${bot.id}/messages?limit=20`))).items.map(
      ({ text }: { text: string }) => text,
    );

  /** Deletes from Redis all messages and chats that are in Postgres, as if their time to live in Redis had ended. */
  async function endHotTime(): Promise<void> {
    await drained(service);
    for (const master of openMasters(service.redis)) {
      for await (const keys of master.scanStream({ count: 1_000 })) {
        const hot = (keys as string[]).filter((key) => /\}:(msg|chat):/.test(key));
        if (hot.length > 0) await Promise.all(hot.map((key) => master.del(key)));
      }
      master.disconnect();
    }
  }

  /** Returns how many reads the standby served, and how many reads went to the primary instead. */
  async function counted(): Promise<{ standby: number; primary: number }> {
    const figures = await (await fetch(`${service.fronts[0].url}/metrics`)).text();
    const of = (name: string) =>
      Number(new RegExp(`^${name}(?:{[^}]*})? (\\d+)`, 'm').exec(figures)?.[1] ?? -1);
    return {
      standby: of('petrel_postgres_replica_reads_total'),
      primary: of('petrel_postgres_replica_fallbacks_total'),
    };
  }

  async function readsOf(work: () => Promise<unknown>) {
    const before = await counted();
    await work();
    const after = await counted();
    return { standby: after.standby - before.standby, primary: after.primary - before.primary };
  }

  /**
   * Reads until the standby serves a read, because the first connections to the standby may take too long on a busy
   * machine.
   */
  async function servedByStandby(...expected: readonly string[]): Promise<void> {
    const wrong: string[][] = [];
    const look = async () => {
      const read: string[] = await texts();
      if (read.join() !== expected.join()) wrong.push(read);
    };
    await expect
      .poll(() => endHotTime().then(() => readsOf(look)), { timeout: 40_000 })
      .toEqual({ standby: 1, primary: 0 });
    expect(wrong).toEqual([]);
  }

  test(
    'a standby serves a read only after it has replayed all earlier writes, so no read is stale',
    async () => {
      const first = await send('first');
      await send('second');
      await drained(service);
      await pair.caughtUp();
      await servedByStandby('second', 'first', '/start');

      await ask(pair.standbyUrl, 'select pg_wal_replay_pause()');
      await resultOf(
        service.bot(bot, 'editMessageText', { chat_id: person.id, message_id: first, text: 'edited' }),
      );
      await send('third');
      await endHotTime();
      const behind = await readsOf(async () =>
        expect(await texts()).toEqual(['third', 'second', 'edited', '/start']),
      );
      expect(behind).toEqual({ standby: 0, primary: 1 });
      await resultOf(service.bot(bot, 'deleteMessage', { chat_id: person.id, message_id: first }));
      await endHotTime();
      expect(await texts()).toEqual(['third', 'second', '/start']);

      await ask(pair.standbyUrl, 'select pg_wal_replay_resume()');
      await pair.caughtUp();
      await servedByStandby('third', 'second', '/start');
    },
    patienceMs,
  );

  test(
    'with a delayed standby under load, every read includes all earlier writes',
    async () => {
      await ask(pair.standbyUrl, "alter system set recovery_min_apply_delay = '2s'");
      await ask(pair.standbyUrl, 'select pg_reload_conf()');
      const id = await send('edit 0');
      const sum = { standby: 0, primary: 0 };
      for (let round = 1; round <= 8; round++) {
        // In three of four rounds, the standby replays no changes, so it cannot have the edit at the time of the read.
        if (round % 4 !== 0) await ask(pair.standbyUrl, 'select pg_wal_replay_pause()');
        await resultOf(
          service.bot(bot, 'editMessageText', { chat_id: person.id, message_id: id, text: `edit ${round}` }),
        );
        await endHotTime();
        if (round % 4 === 0) {
          await ask(pair.standbyUrl, 'select pg_wal_replay_resume()');
          await pair.caughtUp();
        }
        const read = await readsOf(async () => expect((await texts())[0]).toBe(`edit ${round}`));
        sum.standby += read.standby;
        sum.primary += read.primary;
        // Waits, because a message can be edited only once per second.
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
      expect(sum.standby).toBeGreaterThan(0);
      expect(sum.primary).toBeGreaterThan(0);
      await ask(pair.standbyUrl, 'alter system reset recovery_min_apply_delay');
      await ask(pair.standbyUrl, 'select pg_reload_conf()');
    },
    patienceMs,
  );

  test(
    'while a standby is unavailable or being promoted, no call reads from the standby or waits for it',
    async () => {
      await pair.caughtUp();
      await pair.promote();
      await endHotTime();
      const promoted = await readsOf(async () => expect((await texts()).length).toBeGreaterThan(2));
      expect(promoted).toEqual({ standby: 0, primary: 1 });
      await endHotTime();
      const took: number[] = [];
      for (let i = 0; i < 10; i++) {
        const began = performance.now();
        expect((await texts()).length).toBeGreaterThan(2);
        took.push(performance.now() - began);
      }
      // A busy machine may delay single reads, but not most of them.
      expect(took.sort((a, b) => a - b)[5]).toBeLessThan(1_000);
      await eventually('the primary serves', async () => (await counted()).primary > 0);
    },
    patienceMs,
  );
});

/**
 * Tests that no data is lost and no change is applied twice when fronts, flushers or sweepers die or freeze under load.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nothingWrong } from '../support/ledger.js';
import type { Front } from '../support/role_process.js';
import { resultOf, type Service, startService } from '../support/service.js';
import { compareStores, drained, postgresHistory, waitingIn } from './compare.js';
import { amount, atLeast, atMost, long, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually } from './world.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ fronts: 2, extraEnv: { PARTITIONS: '16' } });
});
afterAll(() => service?.stop());

const sorted = (history: ReadonlyMap<string, ReadonlyArray<{ readonly messageId: number }>>) =>
  [...history].map(([chat, list]) => [chat, [...list].sort((a, b) => a.messageId - b.messageId)]).sort();

test(
  'R1: if a front is killed under load, no acknowledged message is lost',
  async () => {
    const world = await createWorld(service);
    const count = amount(2_000, 20_000);
    world.poll((round) => round % 2);
    const kills = amount(4, 20);
    const apart = count / (kills + 1);
    const ended = new AbortController();
    let killed = 0;
    let nextAt = apart;
    let killing: Promise<void> | undefined;
    const killOne = async (front: Front) => {
      await front.kill();
      await front.start();
      killed++;
      nextAt = world.ledger.acknowledged.length + apart;
      killing = undefined;
    };
    // The load continues until every kill has happened, even on a fast machine.
    await world.load({
      count: Number.POSITIVE_INFINITY,
      signal: ended.signal,
      front: (lane, tries) => (lane + tries) % 2,
      onAcknowledged: (total) => {
        if (killing || total < nextAt) return;
        if (killed === kills) ended.abort();
        else killing = killOne(service.fronts[killed % 2] as Front);
      },
    });
    const verdict = await world.settled();
    report('R1', 'fronts killed under load', { kills: killed, ...verdict }, [nothingLost(verdict)]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(verdict.acknowledged).toBeGreaterThanOrEqual(count);
    expect(killed).toBe(kills);
    await drained(service);
    // Leaves out the chats of earlier tests, which also have rows in the table.
    const own = await world.history();
    const stored = [...(await postgresHistory(service))].filter(([chat]) => own.has(chat));
    expect(sorted(new Map(stored))).toEqual(sorted(own));
  },
  patienceMs,
);

test(
  'R1: the sweep forwards the updates that a killed front had not forwarded',
  async () => {
    const world = await createWorld(service);
    world.poll(() => 1);
    const [front] = service.fronts;
    const rounds = amount(3, 20);
    let stranded = 0;
    for (let round = 0; round < rounds; round++) {
      const ended = new AbortController();
      const count = Number.POSITIVE_INFINITY;
      const loading = world.load({ count, groupsOnly: true, front: () => 0, signal: ended.signal });
      await sleep(200 + Math.random() * 200);
      // No other process sends messages or runs the sweep. The updates that this front leaves behind therefore stay
      // until the sweep resumes.
      service.deliver.pause();
      await eventually('the front has an update to forward', async () => {
        front.pause();
        if ((await waitingIn(service, 'outbox')) > 0) return true;
        front.resume();
        return false;
      });
      await front.kill();
      ended.abort();
      await loading;
      stranded += await waitingIn(service, 'outbox');
      service.deliver.resume();
      await front.start();
    }
    const verdict = await world.settled();
    report('R1', 'fronts killed before they forwarded', { rounds, stranded, ...verdict }, [
      nothingLost(verdict),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(stranded).toBeGreaterThanOrEqual(rounds);
  },
  patienceMs,
);

test(
  'R1, R7: if a flusher is killed repeatedly, Postgres still becomes equal to Redis, row for row',
  async () => {
    const world = await createWorld(service);
    const count = amount(2_000, 20_000);
    const ended = new AbortController();
    let kills = 0;
    const killing = (async () => {
      while (!ended.signal.aborted) {
        await sleep(100 + Math.random() * 300);
        await service.flush.kill();
        kills++;
        await service.flush.start();
      }
    })();
    const changes = changing(world.users[0] as never, world.bots[0] as never, ended.signal);
    await world.load({ count, front: (lane, tries) => (lane + tries) % 2 });
    await eventually('the flusher died a few times', () => kills >= amount(4, 20), 120_000);
    ended.abort();
    await killing;
    const changed = await changes;
    await drained(service);
    const rows = await compareStores(service);
    report('R1, R7', 'flushers killed under load', { kills, ...changed, ...rows }, [
      atMost('differences between Redis and Postgres', rows.differences.length, 0),
      atMost('quarantined', rows.quarantined, 0),
      atLeast('kills', kills, amount(4, 20)),
    ]);
    expect(rows.differences).toEqual([]);
    expect(rows.quarantined).toBe(0);
    expect(rows.messages).toBeGreaterThanOrEqual(count);
    expect(rows.tombstones).toBeGreaterThanOrEqual(changed.deleted);
    expect(changed.deleted).toBeGreaterThan(10);
  },
  patienceMs,
);

/** Sends, edits and deletes in one direct chat until stopped. */
async function changing(
  user: { readonly id: number },
  bot: { readonly token: string },
  signal: AbortSignal,
): Promise<{ edited: number; deleted: number }> {
  const done = { edited: 0, deleted: 0 };
  while (!signal.aborted) {
    const { message_id } = await resultOf(
      service.bot(bot, 'sendMessage', { chat_id: user.id, text: 'before' }),
    );
    const message = { chat_id: user.id, message_id };
    await resultOf(service.bot(bot, 'editMessageText', { ...message, text: 'after' }, 1));
    done.edited++;
    if (message_id % 2 === 0) {
      await resultOf(service.bot(bot, 'deleteMessage', message));
      done.deleted++;
    }
    await sleep(5);
  }
  return done;
}

test(
  'R2: if a sweeper and a flusher freeze for seconds, no update or row is lost or duplicated',
  async () => {
    const world = await createWorld(service);
    const count = amount(1_500, 20_000);
    world.poll((round) => round % 2);
    const loading = world.load({ count, front: (lane, tries) => (lane + tries) % 2 });
    const rounds = amount(1, 6);
    for (let round = 0; round < rounds; round++) {
      await sleep(200);
      service.deliver.pause();
      service.flush.pause();
      // The freeze is longer than a flusher’s lease, so another flusher may write the same batch as the frozen flusher.
      await sleep(long ? 5_000 + 5_000 * round : 3_500);
      service.deliver.resume();
      service.flush.resume();
    }
    await loading;
    const verdict = await world.settled();
    await drained(service);
    const rows = await compareStores(service);
    report('R2', 'sweeper and flusher frozen for up to 30 s', { rounds, ...verdict, ...rows }, [
      nothingLost(verdict),
      atMost('differences between Redis and Postgres', rows.differences.length, 0),
    ]);
    expect(verdict).toMatchObject(nothingWrong);
    expect(rows.differences).toEqual([]);
  },
  patienceMs,
);

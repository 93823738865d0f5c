import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { expect, test } from 'vitest';
import { createTurns } from '../../src/server/turns.js';
import { resultOf, type Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
onSharedService(async (running) => {
  service = running;
});

test('calls of one account wait in order for a free slot', async () => {
  const turns = createTurns(2, 3);
  const begun: string[] = [];
  const ends: Array<() => void> = [];
  const call = (account: number, name: string) =>
    turns.run(account, () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const calls = ['a', 'b', 'c', 'd', 'e'].map((name) => call(1, name));
  await expect(call(1, 'f')).rejects.toMatchObject({ kind: 'too_many_requests' });
  calls.push(call(2, 'other'));
  await expect.poll(() => begun).toEqual(['a', 'b', 'other']);
  ends[0]?.();
  await expect.poll(() => begun).toEqual(['a', 'b', 'other', 'c']);
  for (let ended = 1; ended < 6; ended++) {
    await expect.poll(() => ends.length).toBeGreaterThan(ended);
    ends[ended]?.();
  }
  await Promise.all(calls);
  const failing = turns.run(1, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(await turns.run(1, () => 'yes')).toBe('yes');
});

test('a bot with hundreds of simultaneous setMyCommands calls does not delay the settings of other bots', async () => {
  const [eve, ann] = [await service.newUser('eve'), await service.newUser('ann')];
  const [hasty, calm] = [await service.newBot(eve, 'hasty'), await service.newBot(ann, 'calm')];
  // Each call stays below 16 KiB. Larger calls would wait for a time slice of the event loop and would not reach the
  // tested limit.
  const commands = Array.from({ length: 100 }, (_, n) => ({
    command: `c${n}`,
    description: 'd'.repeat(100),
  }));
  const set = () => service.bot(hasty, 'setMyCommands', { commands });
  const all = Array.from({ length: 600 }, set);
  for (const name of ['one', 'two', 'three']) await resultOf(service.bot(calm, 'setMyName', { name }));
  const statuses = (await Promise.all(all)).map(({ status }) => status);
  expect([...new Set(statuses)].sort()).toEqual([200, 429]);
  await resultOf(set());
});

test('if the changes of one person wait for a locked row, the changes of other people do not wait', async () => {
  const [eve, ann] = [await service.newUser('eve'), await service.newUser('ann')];
  const change = (user: typeof eve, language_code: string) =>
    service.app(user, 'PATCH', '/api/me', { language_code });
  const db = new pg.Client(service.databaseUrl);
  await db.connect();
  try {
    await db.query('begin');
    await db.query('select 1 from users where id = $1 for update', [eve.id]);
    const waiting = Array.from({ length: 40 }, (_, n) => change(eve, n % 2 ? 'de' : 'fr'));
    const locked = async () => {
      const { rows } = await db.query(
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length;
    };
    await expect.poll(locked).toBeGreaterThanOrEqual(2);
    await setTimeout(300);
    const began = performance.now();
    for (const language of ['de', 'fr', 'uz']) await resultOf(change(ann, language));
    expect(performance.now() - began).toBeLessThan(10_000);
    await db.query('rollback');
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect([...new Set(statuses)].sort()).toEqual([200, 429]);
    await resultOf(change(eve, 'ru'));
  } finally {
    await db.end();
  }
});

/**
 * Stops or freezes Postgres. Calls on hot data succeed and are journaled, and control operations get 503. When Postgres
 * runs again, the journal drains.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nothingWrong, type Verdict } from '../support/ledger.js';
import { type Answer, resultOf, type Service, startService, type TestUser } from '../support/service.js';
import { ownPostgres, type Restartable } from './backends.js';
import { type Comparison, compareStores, drained, waitingIn } from './compare.js';
import { amount, atMost, nothingLost, patienceMs, report } from './report.js';
import { createWorld, eventually } from './world.js';

let postgres: Restartable;
let service: Service;
let owner: TestUser;
beforeAll(async () => {
  postgres = await ownPostgres();
  const database = { url: postgres.url, drop: () => postgres.stop() };
  service = await startService({ fronts: 2, database, extraEnv: { PARTITIONS: '16' } });
  owner = await service.newUser('outage');
});
afterAll(() => service?.stop());

const awayMs = amount(5_000, 60_000);

async function outage(begin: () => Promise<void>, end: (answers: Promise<Answer[]>) => Promise<void>) {
  const world = await createWorld(service);
  world.poll((round) => round % 2);
  const ended = new AbortController();
  const refusals: unknown[] = [];
  let acknowledgedAway = 0;
  let away = false;
  let slowestMs = 0;
  const loading = world.load({
    count: Number.POSITIVE_INFINITY,
    front: (lane, tries) => (lane + tries) % 2,
    signal: ended.signal,
    onRefusal: (status, body) => refusals.push([status, body]),
    onAcknowledged: (_, ms) => {
      if (away) acknowledgedAway++;
      slowestMs = Math.max(slowestMs, Math.round(ms));
    },
  });
  await world.warmedUp();
  await begin();
  away = true;
  const control: Promise<Answer>[] = [];
  for (let left = awayMs; left > 0; left -= 500) {
    control.push(
      service.app(owner, 'POST', '/api/me/bots', {
        username: `away_${left}_${Math.random().toString(36).slice(2, 8)}_bot`,
        name: 'away',
      }),
    );
    await sleep(500);
  }
  await eventually('calls succeed meanwhile', () => acknowledgedAway > 100, 60_000);
  away = false;
  const journaled = await waitingIn(service, 'journal');
  const answered = Promise.all(control);
  await end(answered);
  await sleep(500);
  ended.abort();
  await loading;
  const answers = await answered;
  const verdict = await world.settled();
  await drained(service);
  const rows = await compareStores(service);
  return { refusals, journaled, acknowledgedAway, slowestMs, answers, verdict, rows };
}

const goals = (refusals: readonly unknown[], verdict: Verdict, rows: Comparison) => [
  atMost('calls on hot data that failed', refusals.length, 0),
  nothingLost(verdict),
  atMost('differences between Redis and Postgres', rows.differences.length, 0),
];

test(
  'R6: while Postgres is stopped, calls on hot data succeed and control operations get 503',
  async () => {
    const { answers, refusals, verdict, rows, ...figures } = await outage(
      () => postgres.halt(),
      async (answers) => {
        // Waits for all answers first. Otherwise an operation that waits for its answer could succeed after Postgres
        // has started again.
        await answers;
        await postgres.start();
      },
    );
    report('R6', 'Postgres stopped', { ...figures, ...verdict, ...rows }, goals(refusals, verdict, rows));
    expect(refusals).toEqual([]);
    for (const answer of answers) {
      expect(answer.status).toBe(503);
      expect(answer.body).toMatchObject({ ok: false, error_code: 503, parameters: { retry_after: 1 } });
      expect(answer.headers['retry-after']).toBe('1');
    }
    expect(figures.acknowledgedAway).toBeGreaterThan(100);
    expect(figures.journaled).toBeGreaterThan(100);
    expect(verdict).toMatchObject(nothingWrong);
    expect(rows.differences).toEqual([]);
    await resultOf(service.newBot(owner, 'back').then((bot) => service.bot(bot, 'getMe')));
  },
  patienceMs,
);

test(
  'R6: while Postgres is frozen, calls on hot data succeed, and a control operation succeeds late or gets 503',
  async () => {
    const { answers, refusals, verdict, rows, ...figures } = await outage(
      async () => postgres.pause(),
      async () => postgres.resume(),
    );
    report('R6', 'Postgres frozen', { ...figures, ...verdict, ...rows }, goals(refusals, verdict, rows));
    expect(refusals).toEqual([]);
    for (const { status } of answers) expect([200, 503]).toContain(status);
    expect(figures.acknowledgedAway).toBeGreaterThan(100);
    expect(figures.journaled).toBeGreaterThan(100);
    expect(verdict).toMatchObject(nothingWrong);
    expect(rows.differences).toEqual([]);
  },
  patienceMs,
);

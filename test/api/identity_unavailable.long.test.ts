/** Tests that setters of bot texts change nothing while Postgres is unavailable. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ownPostgres, type Restartable } from '../faults/backends.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { kinds } from './identity_world.js';

let service: Service;
let postgres: Restartable;
let owner: TestUser;

beforeAll(async () => {
  postgres = await ownPostgres();
  const database = { url: postgres.url, drop: () => postgres.stop() };
  service = await startService({ fronts: 2, flushing: false, delivering: false, database });
  owner = await service.newUser('olga');
});
afterAll(() => service?.stop());

const call = (bot: TestBot, method: string, params: Readonly<Record<string, unknown>>, front = 0) =>
  resultOf(service.bot(bot, method, params, front));

test('while Postgres is unavailable, calls that set bot texts get 503', async () => {
  const bot = await service.newBot(owner, 'named');
  const path = `/api/me/bots/${bot.id}`;
  const texts = { name: { '': 'A', ru: 'Р' }, description: { '': 'D' }, short_description: { '': 'S' } };
  await resultOf(service.app(owner, 'PATCH', path, texts));
  const state = async (front: number) => ({
    me: await call(bot, 'getMe', {}, front),
    texts: await Promise.all(kinds.map(({ get }) => call(bot, get, { language_code: 'ru' }, front))),
  });
  const before = await state(0);
  expect(before.texts).toEqual([{ name: 'Р' }, { description: 'D' }, { short_description: 'S' }]);
  await postgres.halt();
  for (const { key, set } of kinds) {
    for (const language of [{}, { language_code: 'ru' }]) {
      const answer = await service.bot(bot, set, { [key]: 'lost', ...language }, 1);
      expect(answer.status).toBe(503);
      expect(answer.body).toEqual({
        ok: false,
        error_code: 503,
        description: 'Service Unavailable: retry after 1',
        parameters: { retry_after: 1 },
      });
    }
  }
  const patched = await service.app(owner, 'PATCH', path, { name: { '': 'lost' } });
  expect(patched.status).toBe(503);
  for (const front of [0, 1]) expect(await state(front)).toEqual(before);
  await postgres.start();
  for (const front of [0, 1]) expect(await state(front)).toEqual(before);
  expect(await resultOf(service.app(owner, 'GET', path))).toMatchObject({ texts });
  await call(bot, 'setMyName', { name: 'Back' });
  expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('Back');
});

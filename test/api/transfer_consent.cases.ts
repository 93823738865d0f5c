import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onConsentService } from './consent_service.js';

let service: Service;
let pool: Pool;
let owner: TestUser;
let heir: TestUser;
let bot: TestBot;

onConsentService((running) => {
  service = running;
  pool = createPool({ url: service.databaseUrl, max: 1, name: 'test' });
});
afterAll(() => pool?.close());
const offer = (to = heir) =>
  resultOf(
    service.app(owner, 'POST', `/api/me/bots/${bot.id}/transfer`, { username: to.username, confirm: true }),
  );
const offers = (by: TestUser) => itemsOf(service.app(by, 'GET', '/api/me/transfers', undefined, 1));
const answer = (by: TestUser, what: 'accept' | 'decline', front = 0) =>
  service.app(by, 'POST', `/api/me/transfers/${bot.id}/${what}`, undefined, front);
const refused = {
  status: 404,
  body: { ok: false, error_code: 404, description: 'Not Found: transfer not found' },
};
const bots = async (by: TestUser) =>
  (await itemsOf(service.app(by, 'GET', '/api/me/bots'))).map(({ id }: { id: number }) => id);
const unchanged = async () => {
  expect([await bots(owner), await bots(heir)]).toEqual([[bot.id], []]);
  expect((await service.bot(bot, 'getMe')).status).toBe(200);
};

describe('transfer consent', () => {
  beforeEach(async () => {
    owner = await service.newUser('olga');
    heir = await service.newUser('heidi');
    bot = await service.newBot(owner, 'offered');
  });

  test('a bot is transferred when its recipient accepts the offer', async () => {
    expect(await offer()).toBe(true);
    await unchanged();
    const listed = {
      ...{ bot_id: bot.id, bot_username: bot.username, from_id: owner.id, to_id: heir.id },
      expires_at: expect.any(Number),
    };
    for (const each of [owner, heir]) expect(await offers(each)).toEqual([listed]);
    const inAWeek = Date.now() / 1_000 + 7 * 86_400;
    expect(Math.abs((await offers(heir))[0].expires_at - inAWeek)).toBeLessThan(60);
    expect(await answer(owner, 'accept')).toMatchObject(refused);
    expect(await answer(await service.newUser('eve'), 'accept')).toMatchObject(refused);
    await unchanged();
    const answers = await Promise.all([answer(heir, 'accept', 0), answer(heir, 'accept', 1)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404]);
    expect([await bots(owner), await bots(heir)]).toEqual([[], [bot.id]]);
    for (const front of [0, 1]) expect((await service.bot(bot, 'getMe', {}, front)).status).toBe(401);
    for (const each of [owner, heir]) expect(await offers(each)).toEqual([]);
    const { items } = await resultOf(service.app(heir, 'GET', `/api/me/bots/${bot.id}/audit`));
    expect(items.map(({ event }: { event: string }) => event)).toEqual(['transferred']);
  });

  test('a transfer offer ends when it is declined, withdrawn, replaced or expired', async () => {
    await offer();
    expect(await resultOf(answer(heir, 'decline'))).toBe(true);
    expect(await answer(heir, 'accept')).toMatchObject(refused);
    await offer();
    expect(await resultOf(answer(owner, 'decline'))).toBe(true);
    expect(await answer(heir, 'accept')).toMatchObject(refused);
    await offer();
    const other = await service.newUser('oscar');
    await offer(other);
    expect(await answer(heir, 'accept')).toMatchObject(refused);
    await offer();
    await pool.query(
      statement('age_offers', "update bot_transfers set expires_at = now() - interval '1 second'"),
    );
    expect(await offers(heir)).toEqual([]);
    for (const what of ['accept', 'decline'] as const)
      expect(await answer(heir, what)).toMatchObject(refused);
    await unchanged();
    const { items } = await resultOf(service.app(owner, 'GET', `/api/me/bots/${bot.id}/audit`));
    expect(items.map(({ event }: { event: string }) => event)).toEqual([
      ...[
        'transfer_offered',
        'transfer_offered',
        'transfer_offered',
        'transfer_withdrawn',
        'transfer_offered',
      ],
      ...['transfer_declined', 'transfer_offered', 'created'],
    ]);
  });

  test('deleting a bot removes the offer to transfer the bot', async () => {
    await offer();
    await resultOf(service.app(owner, 'DELETE', `/api/me/bots/${bot.id}`));
    expect(await answer(heir, 'accept')).toMatchObject(refused);
    expect(await offers(heir)).toEqual([]);
  });
});

/** Tests durable calls of a running service (decision 0055), also on a Redis Cluster. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resultOf, type Service, startService, type TestUser } from '../support/service.js';

let service: Service;
let database: pg.Client;
let user: TestUser;

beforeAll(async () => {
  // Unless a front requests a flush, a flusher pauses for 40 s.
  service = await startService({
    ...{ fronts: 2, delivering: false },
    ...{ frontEnv: { DURABLE: '1' }, extraEnv: { FLUSH_INTERVAL_MS: '10000' } },
  });
  database = new pg.Client(service.databaseUrl);
  await database.connect();
  user = await service.newUser('ann');
});
afterAll(async () => {
  await database?.end();
  await service?.stop();
});

test('a durable call is answered only after the commit, in every partition and on every front', async () => {
  const bots = await Promise.all(Array.from({ length: 8 }, (_, i) => service.newBot(user, `writer_${i}`)));
  for (const bot of bots) await service.openChat(user, bot);
  const sends = bots.flatMap((bot) => Array.from({ length: 6 }, (_, i) => ({ bot, front: i % 2 })));
  const counts = await Promise.all(
    sends.map(async ({ bot, front }) => {
      const params = { chat_id: user.id, text: 'kept' };
      const { message_id } = await resultOf(service.bot(bot, 'sendMessage', params, front));
      const stored = await database.query(
        'select 1 from messages where chat_id = $1 and user_id = $2 and message_id = $3',
        [bot.id, user.id, message_id],
      );
      return stored.rowCount;
    }),
  );
  expect(counts).toEqual(sends.map(() => 1));
});

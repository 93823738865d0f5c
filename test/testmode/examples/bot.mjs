import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Bot } from 'grammy';
import { startTestServer } from 'petrel/testing';

let server;
before(async () => {
  server = await startTestServer();
});
after(() => server.stop());

test('the bot repeats what a person says, although the first call fails', async () => {
  const world = await server.world();
  const bot = new Bot(world.bot.token, { client: { apiRoot: world.apiRoot } });
  bot.on('message:text', (ctx) => ctx.reply(ctx.msg.text).catch(() => ctx.reply(ctx.msg.text)));
  void bot.start();
  await world.fault('sendMessage', { status: 502 });
  await world.person().send('hello');
  const [failed, repeated] = await world.waitForCalls('sendMessage', { count: 2 });
  assert.equal(failed.status, 502);
  assert.equal(repeated.answer.result.text, 'hello');
  await bot.stop();
});

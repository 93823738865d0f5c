import { Bot, InlineKeyboard } from 'grammy';
import { startTestServer, type TestServer, type World } from 'petrel/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** The bot under test. */
function createBot({ bot: { token }, apiRoot }: World) {
  const bot = new Bot(token, { client: { apiRoot } });
  const keyboard = new InlineKeyboard().text('Yes', 'yes').text('No', 'no');
  bot.command('start', (ctx) => ctx.reply('Do you like tea?', { reply_markup: keyboard }));
  bot.callbackQuery('yes', (ctx) => ctx.editMessageText('Tea it is.'));
  return bot;
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
}, 120_000);
afterAll(() => server.stop());

test('a person who likes tea gets tea', async () => {
  const world = await server.world();
  const bot = createBot(world);
  void bot.start();
  await world.person('ann').start();
  const [question] = await world.waitForCalls('sendMessage');
  expect(question.params.text).toBe('Do you like tea?');
  await world.person('ann').press(question.answer.result.message_id, 'yes');
  const [edit] = await world.waitForCalls('editMessageText');
  expect(edit.answer.result.text).toBe('Tea it is.');
  await bot.stop();
});

/**
 * Tests that a recording can be repeated in another world, and that the result shows what a changed bot does
 * differently.
 */
import { Bot, InlineKeyboard } from 'grammy';
import { expect, onTestFinished, test } from 'vitest';
import type { TestServer, World } from '../../src/testing/client.js';
import { onTestServer } from './server.js';

let server: TestServer;
onTestServer((started) => {
  server = started;
});

/** Starts a bot that asks for a drink. */
function startBot(world: World, { served = 'Served.' } = {}): void {
  const bot = new Bot(world.bot.token, { client: { apiRoot: world.apiRoot } });
  const keyboard = new InlineKeyboard().text('Tea', 'tea');
  bot.command('start', (ctx) => ctx.reply(`A drink, @${ctx.from?.username}?`, { reply_markup: keyboard }));
  bot.on('callback_query:data', async (ctx) => {
    await ctx.editMessageText(served);
    await ctx.answerCallbackQuery();
  });
  bot.on('message:text', (ctx) =>
    ctx.reply('Yes.', { reply_parameters: { message_id: ctx.msg.message_id } }),
  );
  void bot.start();
  onTestFinished(() => bot.stop());
}

async function recorded() {
  const world = await server.world();
  startBot(world);
  const ann = world.person();
  await ann.start();
  const [question] = await world.waitForCalls('sendMessage');
  await ann.press(question.answer.result.message_id, 'tea');
  await world.waitForCalls('answerCallbackQuery');
  await ann.send('ready?');
  await world.waitForCalls('sendMessage', { count: 2 });
  const saved = await world.save();
  expect(JSON.stringify(saved)).not.toContain(world.bot.token);
  return JSON.parse(JSON.stringify(saved));
}

test('a replay reports message ids by their order, so only a changed text differs from the recording', async () => {
  const recording = await recorded();
  const same = await server.world();
  startBot(same);
  const unchanged = await same.replay(recording);
  expect(unchanged.actual).toEqual(unchanged.expected);
  expect(unchanged.expected[1]).toMatchObject({ params: { chat_id: 'ann', message_id: 'bot 1' } });
  const changed = await server.world();
  startBot(changed, { served: 'Here you are.' });
  const { expected, actual } = await changed.replay(recording);
  expect(actual.filter((call, i) => JSON.stringify(call) !== JSON.stringify(expected[i]))).toMatchObject([
    { name: 'editMessageText', params: { text: 'Here you are.' } },
  ]);
});

test('a replay fails if an action needs a message that the bot does not send', async () => {
  const recording = await recorded();
  const world = await server.world();
  await expect(world.replay(recording, { waitMs: 50 })).rejects.toThrow(
    'ann cannot repeat "press": "bot 1" is missing in ann',
  );
});

test('a replay sends the recorded files again if the caller provides them', async () => {
  const first = await server.world();
  await first.person().sendFile('document', 'plan.txt', 'one');
  const recording = await first.save();
  const [second, third] = [await server.world(), await server.world()];
  await expect(second.replay(recording)).rejects.toThrow('the recording needs the file plan.txt');
  await third.replay(recording, { files: { 'plan.txt': 'one' } });
  expect(await third.recording({ kind: 'action' })).toMatchObject([
    { status: 200, params: { document: { filename: 'plan.txt', bytes: 3 } } },
  ]);
});

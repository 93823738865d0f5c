/**
 * Tests that a recording can be repeated in another world, and that the result shows what a changed bot does
 * differently.
 */
import { Bot, InlineKeyboard, InputFile } from 'grammy';
import { expect, onTestFinished, test } from 'vitest';
import type { TestServer, World } from '../../src/testing/client.js';
import { call, onTestServer } from './server.js';

let server: TestServer;
onTestServer((started) => {
  server = started;
});

/** Starts a bot that asks which drink the person wants. */
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

test('a replay fails if an action refers to a message that the bot has not sent', async () => {
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

/**
 * Starts a bot that replies to each text and answers inline queries. On the command /copy, the bot copies the
 * replied-to message to ann. Resolves when the bot has dropped earlier updates.
 */
async function startGroupBot(world: World): Promise<void> {
  const bot = new Bot(world.bot.token, { client: { apiRoot: world.apiRoot } });
  const [ann] = world.people;
  bot.on('inline_query', (ctx) =>
    ctx.answerInlineQuery(
      [{ type: 'article', id: 'tea', title: 'Tea', input_message_content: { message_text: 'Tea!' } }],
      { cache_time: 0 },
    ),
  );
  bot.command('copy', (ctx) =>
    ctx.api.copyMessage(ann?.id ?? 0, ctx.chat.id, ctx.msg.reply_to_message?.message_id ?? 0),
  );
  bot.command('two', async (ctx) => {
    const media = (name: string) => ({
      ...{ type: 'document' as const, media: new InputFile(new TextEncoder().encode(name), `${name}.txt`) },
    });
    const [, second] = await ctx.replyWithMediaGroup([media('one'), media('two')]);
    await ctx.api.deleteMessage(ctx.chat.id, second?.message_id ?? 0);
  });
  bot.on('message:text', (ctx) => ctx.reply('heard'));
  bot.catch(() => undefined);
  await new Promise<void>((resolve) => {
    void bot.start({ drop_pending_updates: true, onStart: () => resolve() });
  });
  onTestFinished(() => bot.stop());
}

test('a replay finds the people, groups, replied-to messages, queries and albums of the recording, and repeats refusals', async () => {
  const form = { people: ['ann', 'ben', 'cat'], group: true, inline: true };
  const first = await server.world(form);
  await startGroupBot(first);
  const [ann, ben] = [first.person(), first.person('ben')];
  await ben.join('group');
  await ann.send('before', { chat: 'group' });
  await first.waitForCalls('sendMessage');
  const said = await ben.send('remember', { chat: first.chats.group as number });
  await first.waitForCalls('sendMessage', { count: 2 });
  await ann.send('/copy', { chat: 'group', reply_to_message_id: said.message_id });
  await first.waitForCalls('copyMessage');
  await expect(ben.edit(said.message_id, '', { chat: 'group' })).rejects.toMatchObject({ status: 400 });
  const { inline_query_id } = await ann.inlineQuery('te');
  await ann.choose(inline_query_id, 'tea');
  await first.waitForCalls('sendMessage', { count: 3 });
  await ben.send('/two', { chat: 'group' });
  await first.waitForCalls('deleteMessage');
  await ben.leave('group');
  await expect(ben.send('outside', { chat: 'group' })).rejects.toMatchObject({ status: 403 });
  const recording = JSON.parse(JSON.stringify(await first.save()));

  // Message ids differ from the ids in the recording, because this world already contains an earlier message.
  const second = await server.world(form);
  await second.person('cat').join('group');
  await second.person('cat').send('not in the recording', { chat: 'group' });
  await startGroupBot(second);
  const began = performance.now();
  const waitMs = 30_000;
  const { expected, actual } = await second.replay(recording, { waitMs });
  // An inline query ends only after the bot has answered the query. The replay must therefore continue to the bot's
  // answer instead of waiting for the end of the query.
  expect(performance.now() - began).toBeLessThan(waitMs);
  expect(actual).toEqual(expected);
  expect(expected).toMatchObject([
    { name: 'sendMessage', params: { chat_id: 'group' } },
    { name: 'sendMessage', params: { chat_id: 'group' } },
    { name: 'copyMessage', params: { chat_id: 'ann', from_chat_id: 'group', message_id: 'ben 1' } },
    { name: 'answerInlineQuery', params: { inline_query_id: 'query 1' } },
    { name: 'sendMessage', params: { chat_id: 'ann' } },
    { name: 'sendMediaGroup', params: { chat_id: 'group' } },
    { name: 'deleteMessage', params: { chat_id: 'group', message_id: 'bot 4' } },
  ]);
  const sends = await second.recording({ kind: 'action', name: 'send' });
  expect(sends.map(({ person, status }) => `${person} ${status}`)).toEqual([
    ...['cat 200', 'ann 200', 'ben 200', 'ann 200', 'ben 200', 'ben 403'],
  ]);
});

test('a replay fails if an action that succeeded in the recording is refused', async () => {
  const form = { people: ['ann', 'ben'], group: true };
  const first = await server.world(form);
  await first.person('ben').join('group');
  const second = await server.world(form);
  const where = { chat_id: second.chats.group, user_id: second.person('ben').id };
  expect((await call(server.url, second.bot.token, 'banChatMember', where)).status).toBe(200);
  await expect(second.replay(await first.save())).rejects.toMatchObject({ status: 403 });
});

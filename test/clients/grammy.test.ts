import { Bot, GrammyError, InlineKeyboard, InlineQueryResultBuilder } from 'grammy';
import { afterAll, afterEach, expect, test } from 'vitest';
import { itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { type Balancer, startBalancer } from './balancer.js';
import { eventually } from './event_source.js';
import { expectCommands, expectEcho, expectMenu } from './scenario.js';

let service: Service;
let balancer: Balancer;
let user: TestUser;
let running: { readonly bot: Bot; readonly ended: Promise<void> } | undefined;

onSharedService(async (running) => {
  service = running;
  balancer = await startBalancer(service.fronts);
  user = await service.newUser('ann');
});
afterEach(async () => {
  await running?.bot.stop();
  await running?.ended;
  running = undefined;
});
afterAll(async () => {
  await balancer?.close();
});

/**
 * Returns the URL that the bot uses: the first front, or the balancer, which alternates between the fronts. People
 * always use both fronts.
 */
const rootOf = (name: string) => (name === 'a front' ? service.fronts[0].url : balancer.url);

async function run(bot: Bot): Promise<void> {
  bot.catch((error) => {
    throw error;
  });
  await new Promise<void>((resolve) => {
    running = { bot, ended: bot.start({ onStart: () => resolve() }) };
  });
}

test.each(['a front', 'a balancer'])(
  'an echo bot behind %s answers each message it gets by long polling',
  async (name) => {
    const made = await service.newBot(user, 'echo');
    await service.openChat(user, made);
    const bot = new Bot(made.token, { client: { apiRoot: rootOf(name) } });
    bot.command('start', () => undefined);
    bot.on('message:text', (ctx) => ctx.reply(`echo: ${ctx.message.text}`));
    await run(bot);
    expect(bot.botInfo).toMatchObject({
      id: made.id,
      username: made.username,
      is_bot: true,
      can_join_groups: true,
    });
    await expectEcho(service, user, made, 12);
    if (name === 'a balancer') expect(Math.min(...balancer.counts)).toBeGreaterThan(20);
  },
);

test.each(['a front', 'a balancer'])(
  'a grammY bot behind %s serves a menu of inline buttons',
  async (name) => {
    const made = await service.newBot(user, 'menu');
    await service.openChat(user, made);
    const bot = new Bot(made.token, { client: { apiRoot: rootOf(name) } });
    const keyboard = (n: number) => new InlineKeyboard().text('+', `add:${n}`).text('same', `same:${n}`);
    bot.command('menu', (ctx) => ctx.reply('count 0', { reply_markup: keyboard(0) }));
    bot.callbackQuery(/^add:(\d+)$/, async (ctx) => {
      const n = Number(ctx.match[1]) + 1;
      await ctx.answerCallbackQuery({ text: `now ${n}`, ...(n === 3 ? { show_alert: true } : {}) });
      await ctx.editMessageText(`count ${n}`, { reply_markup: keyboard(n) });
    });
    bot.callbackQuery(/^same:(\d+)$/, async (ctx) => {
      const n = Number(ctx.match[1]);
      const refusal = await ctx
        .editMessageText(`count ${n}`, { reply_markup: keyboard(n) })
        .catch((error) => error);
      expect(refusal).toBeInstanceOf(GrammyError);
      await ctx.answerCallbackQuery(refusal.description);
    });
    await run(bot);
    await expectMenu(service, user, made);
  },
);

test('a grammY bot gets commands with the start payload', async () => {
  const [made, other] = [await service.newBot(user, 'cmd'), await service.newBot(user, 'other')];
  const bot = new Bot(made.token, { client: { apiRoot: balancer.url } });
  bot.command('start', (ctx) => ctx.reply(`payload ${ctx.match}`));
  bot.command('ping', (ctx) => ctx.reply(`pong ${ctx.match}`));
  await run(bot);
  await expectCommands(service, user, made, other);

  const german = { language_code: 'de' as const };
  const groups = { scope: { type: 'all_group_chats' as const } };
  const commands = [
    { command: 'start', description: 'Begin' },
    { command: 'ping', description: 'Ask for a pong' },
  ];
  expect(await bot.api.getMyCommands()).toEqual([]);
  expect(await bot.api.setMyCommands(commands)).toBe(true);
  expect(await bot.api.setMyCommands([{ command: 'ping', description: 'Hallo' }], german)).toBe(true);
  expect(await bot.api.setMyCommands(commands.slice(1), groups)).toBe(true);
  // The balancer alternates between the fronts, so these calls reach both fronts.
  for (let i = 0; i < 2; i++) {
    expect(await bot.api.getMyCommands()).toEqual(commands);
    expect(await bot.api.getMyCommands(german)).toEqual([{ command: 'ping', description: 'Hallo' }]);
    expect(await bot.api.getMyCommands(groups)).toEqual(commands.slice(1));
    await bot.api.getMe();
  }
  expect(await bot.api.deleteMyCommands(german)).toBe(true);
  expect(await bot.api.getMyCommands(german)).toEqual([]);
  expect(await bot.api.getMyCommands()).toEqual(commands);
  await expect(bot.api.setMyCommands([{ command: 'Bad Name', description: 'x' }])).rejects.toMatchObject({
    error_code: 400,
    description: 'Bad Request: BOT_COMMAND_INVALID',
  });
});

test('when a grammY bot stops, it confirms the updates that it has received', async () => {
  const made = await service.newBot(user, 'again');
  await service.openChat(user, made);
  const received: string[] = [];
  const botAt = (front: number) => {
    const bot = new Bot(made.token, { client: { apiRoot: service.fronts[front]?.url ?? '' } });
    bot.on('message:text', (ctx) => void received.push(`${front} ${ctx.message.text}`));
    return bot;
  };
  await run(botAt(0));
  await eventually(() => expect(received).toEqual(['0 /start']));
  await running?.bot.stop();
  await running?.ended;
  await service.app(user, 'POST', `/api/chats/${made.id}/messages`, { text: 'later' });
  await run(botAt(1));
  await eventually(() => expect(received).toEqual(['0 /start', '1 later']));
});

test('a grammY bot answers inline queries, learns which result was chosen, and edits the sent message', async () => {
  const made = await service.newBot(user, 'inline');
  const mode = { enabled: true, placeholder: 'Search', feedback: true };
  await resultOf(service.app(user, 'PUT', `/api/me/bots/${made.id}/inline_mode`, mode));
  const group = await service.newGroup(user, 'Club');
  const bot = new Bot(made.token, { client: { apiRoot: balancer.url } });
  const chosen: string[] = [];
  bot.inlineQuery(/^times (\d+)$/, async (ctx) => {
    const n = Number(ctx.match[1]);
    const keyboard = new InlineKeyboard().text('+1', `add:${n}`).switchInlineCurrent('more', 'times 2');
    const results = [1, 2].map((by) =>
      InlineQueryResultBuilder.article(`${by}`, `${n} times ${by}`, {
        description: `${n * by}`,
        reply_markup: keyboard,
      }).text(`*${n * by}*`, { parse_mode: 'MarkdownV2' }),
    );
    const photo = InlineQueryResultBuilder.photo('p', 'https://example.org/a.jpg', { caption: 'picture' });
    await ctx.answerInlineQuery([...results, photo], {
      ...{ cache_time: 0, next_offset: '2' },
      button: { text: 'Settings', start_parameter: 'settings' },
    });
  });
  bot.on('chosen_inline_result', async (ctx) => {
    chosen.push(`${ctx.chosenInlineResult.query} → ${ctx.chosenInlineResult.result_id}`);
    if (ctx.chosenInlineResult.query === 'times 7') await ctx.editMessageText('edited');
  });
  bot.callbackQuery(/^add:(\d+)$/, async (ctx) => {
    await ctx.answerCallbackQuery('added');
    await ctx.editMessageText(`${Number(ctx.match[1]) + 1}`);
  });
  await run(bot);
  expect(bot.botInfo.supports_inline_queries).toBe(true);

  const at = `/api/chats/${group}`;
  const asked = { bot_id: made.id, query: 'times 7' };
  const answer = await resultOf(service.app(user, 'POST', `${at}/inline_query`, asked, 1));
  expect(answer).toMatchObject({
    results: [
      { id: '1', type: 'article', title: '7 times 1', description: '7' },
      { id: '2', type: 'article', title: '7 times 2', description: '14' },
      { id: 'p', type: 'photo', photo: [{ url: 'https://example.org/a.jpg' }] },
    ],
    next_offset: '2',
    button: { text: 'Settings', start_parameter: 'settings' },
  });
  const choice = { inline_query_id: answer.inline_query_id, result_id: '2' };
  const sent = await resultOf(service.app(user, 'POST', `${at}/inline_result`, choice, 1));
  expect(sent).toMatchObject({ text: '14', via_bot: { id: made.id }, from: { id: user.id } });
  const text = async () => (await itemsOf(service.app(user, 'GET', `${at}/messages?limit=1`)))[0].text;
  await eventually(async () => expect([chosen, await text()]).toEqual([['times 7 → 2'], 'edited']));

  const again = await resultOf(
    service.app(user, 'POST', `${at}/inline_query`, { ...asked, query: 'times 8' }),
  );
  const other = { inline_query_id: again.inline_query_id, result_id: '1' };
  const { message_id } = await resultOf(service.app(user, 'POST', `${at}/inline_result`, other));
  await resultOf(service.app(user, 'POST', `${at}/messages/${message_id}/callback`, { data: 'add:8' }));
  await eventually(async () => expect(await text()).toBe('9'));
});

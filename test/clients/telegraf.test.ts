import { Markup, Telegraf, TelegramError } from 'telegraf';
import { message } from 'telegraf/filters';
import { afterAll, afterEach, expect, test } from 'vitest';
import type { Service, TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { type Balancer, startBalancer } from './balancer.js';
import { expectCommands, expectEcho, expectMenu } from './scenario.js';

let service: Service;
let balancer: Balancer;
let user: TestUser;
let running: { readonly bot: Telegraf; readonly ended: Promise<void> } | undefined;

onSharedService(async (running) => {
  service = running;
  balancer = await startBalancer(service.fronts);
  user = await service.newUser('tom');
});
afterEach(async () => {
  running?.bot.stop();
  await running?.ended;
  running = undefined;
});
afterAll(async () => {
  await balancer?.close();
});

async function run(bot: Telegraf): Promise<void> {
  await new Promise<void>((resolve) => {
    running = { bot, ended: bot.launch(() => resolve()) };
  });
}

test('a Telegraf echo bot answers each message it gets by long polling', async () => {
  const made = await service.newBot(user, 'echo');
  await service.openChat(user, made);
  const bot = new Telegraf(made.token, { telegram: { apiRoot: service.fronts[0].url } });
  bot.start(() => undefined);
  // Telegraf handles the updates of one poll at the same time, so the test sends the replies one after the other.
  let previous: Promise<unknown> = Promise.resolve();
  bot.on(message('text'), (ctx) => {
    previous = previous.then(() => ctx.reply(`echo: ${ctx.message.text}`));
    return previous;
  });
  await run(bot);
  expect(bot.botInfo).toMatchObject({ id: made.id, username: made.username });
  await expectEcho(service, user, made, 12);
});

test('a Telegraf bot serves a menu of inline buttons', async () => {
  const made = await service.newBot(user, 'menu');
  await service.openChat(user, made);
  const bot = new Telegraf(made.token, { telegram: { apiRoot: balancer.url } });
  const keyboard = (n: number) =>
    Markup.inlineKeyboard([
      Markup.button.callback('+', `add:${n}`),
      Markup.button.callback('same', `same:${n}`),
    ]);
  bot.command('menu', (ctx) => ctx.reply('count 0', keyboard(0)));
  bot.action(/^add:(\d+)$/, async (ctx) => {
    const n = Number(ctx.match[1]) + 1;
    await ctx.answerCbQuery(`now ${n}`, n === 3 ? { show_alert: true } : {});
    await ctx.editMessageText(`count ${n}`, keyboard(n));
  });
  bot.action(/^same:(\d+)$/, async (ctx) => {
    const n = Number(ctx.match[1]);
    const refusal = await ctx.editMessageText(`count ${n}`, keyboard(n)).catch((error) => error);
    expect(refusal).toBeInstanceOf(TelegramError);
    await ctx.answerCbQuery(refusal.description);
  });
  await run(bot);
  await expectMenu(service, user, made);
});

test('a Telegraf bot gets commands with the start payload', async () => {
  const [made, other] = [await service.newBot(user, 'cmd'), await service.newBot(user, 'other')];
  const bot = new Telegraf(made.token, { telegram: { apiRoot: balancer.url } });
  bot.start((ctx) => ctx.reply(`payload ${ctx.payload}`));
  bot.command('ping', (ctx) => ctx.reply(`pong ${ctx.payload}`));
  await run(bot);
  await expectCommands(service, user, made, other);
  const commands = [{ command: 'ping', description: 'Ask for a pong' }];
  expect(await bot.telegram.setMyCommands(commands, { scope: { type: 'chat', chat_id: user.id } })).toBe(
    true,
  );
  expect(await bot.telegram.getMyCommands({ scope: { type: 'chat', chat_id: user.id } })).toEqual(commands);
  expect(await bot.telegram.getMyCommands()).toEqual([]);
  expect(await bot.telegram.deleteMyCommands({ scope: { type: 'chat', chat_id: user.id } })).toBe(true);
  expect(await bot.telegram.getMyCommands({ scope: { type: 'chat', chat_id: user.id } })).toEqual([]);
});

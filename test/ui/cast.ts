/** Provides two people and a grammY bot that answers them, for tests in the browser. */
import { Agent } from 'node:http';
import { Bot, InlineKeyboard } from 'grammy';
import type { Page } from 'playwright-core';
import { itemsOf, resultOf, type TestBot, type TestUser } from '../support/service.js';
import type { World } from './world.js';

export interface Cast {
  readonly alice: TestUser;
  readonly bob: TestUser;
  /** The bot that Alice owns. */
  readonly made: TestBot;
  /** The running program of the bot. The caller must stop it. */
  readonly bot: Bot;
  /** Marks all messages of a chat as read. */
  read(user: TestUser, chat: number): Promise<void>;
  /** Opens a chat at its end. A chat with unread messages would otherwise open at the first unread message. */
  openAtEnd(user: TestUser, chat: number): Promise<Page>;
}

export async function createCast(world: World): Promise<Cast> {
  const { service } = world;
  const [alice, bob] = await Promise.all([service.newUser('alice'), service.newUser('bob')]);
  const made = await service.newBot(alice, 'echo');
  // Closes an idle connection before the front closes it after 8 s. A call on a connection that the front is closing
  // can fail.
  const agent = new Agent({ keepAlive: true, timeout: 4_000 });
  const bot = new Bot(made.token, { client: { apiRoot: service.fronts[0].url, baseFetchConfig: { agent } } });
  bot.command('start', (ctx) =>
    ctx.reply('Welcome', { reply_markup: new InlineKeyboard().text('Press', 'pressed') }),
  );
  bot.callbackQuery('pressed', async (ctx) => {
    await ctx.answerCallbackQuery({ text: 'Well done' });
    await ctx.editMessageText('You pressed it');
  });
  bot.hears('pin it', async (ctx) => {
    const { message_id } = await ctx.reply('To be kept');
    await ctx.api.pinChatMessage(ctx.chat.id, message_id);
  });
  bot.command('steps', (ctx) =>
    ctx.reply('Step 1', { reply_markup: new InlineKeyboard().text('Next', 'next') }),
  );
  bot.callbackQuery('next', async (ctx) => {
    await ctx.answerCallbackQuery();
    const row = new InlineKeyboard().text('Erase', 'erase').text('Another').text('Preferences');
    await ctx.editMessageText('Step 2', { reply_markup: row });
  });
  void bot.start();
  async function read(user: TestUser, chat: number): Promise<void> {
    const path = `/api/chats/${chat}`;
    const [last] = await itemsOf(service.app(user, 'GET', `${path}/messages?limit=1`));
    await resultOf(service.app(user, 'POST', `${path}/read`, { message_id: last.message_id }));
  }
  return {
    ...{ alice, bob, made, bot, read },
    async openAtEnd(user, chat) {
      await read(user, chat);
      return world.open(user, `#/chat/${chat}`);
    },
  };
}

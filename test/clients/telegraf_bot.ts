/**
 * A Telegraf bot that runs the steps with Telegraf's calls, contexts, filters and errors. After an error 429, the bot
 * waits for the time in the error.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Input, Markup, Telegraf, TelegramError } from 'telegraf';
import { expect } from 'vitest';
import {
  allUpdates,
  type Calls,
  type GivenFile,
  type Library,
  type LibraryBot,
  type MediaKind,
  type Refusal,
} from './library.js';

/** Telegraf takes uploads as `{ source, filename }`, and URLs and file_ids as text. */
const inputOf = (file: GivenFile) => file as never;

function callsOf({ telegram }: Telegraf): Calls {
  const send = {
    photo: telegram.sendPhoto.bind(telegram),
    video: telegram.sendVideo.bind(telegram),
    audio: telegram.sendAudio.bind(telegram),
    document: telegram.sendDocument.bind(telegram),
    animation: telegram.sendAnimation.bind(telegram),
    voice: telegram.sendVoice.bind(telegram),
  } satisfies Record<MediaKind, unknown>;
  return {
    getMe: () => telegram.getMe(),
    sendMessage: (chat, text, extra) => telegram.sendMessage(chat, text, extra),
    sendMedia: (kind, chat, file, extra) => send[kind](chat, inputOf(file), extra),
    sendMediaGroup: (chat, media) => telegram.sendMediaGroup(chat, media as never),
    getFile: (id) => telegram.getFile(id),
    async download(id) {
      const answer = await fetch(await telegram.getFileLink(id));
      expect(answer.status).toBe(200);
      return Buffer.from(await answer.arrayBuffer());
    },
    editMessageText: (chat, id, text, extra) => telegram.editMessageText(chat, id, undefined, text, extra),
    editMessageCaption: (chat, id, caption, extra) =>
      telegram.editMessageCaption(chat, id, undefined, caption, extra),
    editMessageMedia: (chat, id, media) => telegram.editMessageMedia(chat, id, undefined, media as never),
    editMessageReplyMarkup: (chat, id, inline_keyboard) =>
      telegram.editMessageReplyMarkup(chat, id, undefined, { inline_keyboard }),
    deleteMessage: (chat, id) => telegram.deleteMessage(chat, id),
    deleteMessages: (chat, ids) => telegram.deleteMessages(chat, ids),
    forwardMessage: (chat, from, id, extra) => telegram.forwardMessage(chat, from, id, extra),
    forwardMessages: (chat, from, ids, extra) => telegram.forwardMessages(chat, from, ids, extra),
    copyMessage: (chat, from, id, extra) => telegram.copyMessage(chat, from, id, extra),
    copyMessages: (chat, from, ids, extra) => telegram.copyMessages(chat, from, ids, extra),
    pinChatMessage: (chat, id, extra) => telegram.pinChatMessage(chat, id, extra),
    unpinChatMessage: (chat, id) => telegram.unpinChatMessage(chat, id),
    unpinAllChatMessages: (chat) => telegram.unpinAllChatMessages(chat),
    getChat: (chat) => telegram.getChat(chat),
    getChatMember: (chat, user) => telegram.getChatMember(chat, user),
    getChatAdministrators: (chat) => telegram.getChatAdministrators(chat),
    getChatMemberCount: (chat) => telegram.getChatMembersCount(chat),
    leaveChat: (chat) => telegram.leaveChat(chat),
    answerCallbackQuery: (id, text) => telegram.answerCbQuery(id, text),
    setMyCommands: (commands, extra) => telegram.setMyCommands(commands, extra),
    getMyCommands: (extra) => telegram.getMyCommands(extra),
    deleteMyCommands: (extra) => telegram.deleteMyCommands(extra),
    setMyName: (name, language) => telegram.setMyName(name, language),
    getMyName: (language) => telegram.getMyName(language),
    setMyDescription: (text, language) => telegram.setMyDescription(text, language),
    getMyDescription: (language) => telegram.getMyDescription(language),
    setMyShortDescription: (text, language) => telegram.setMyShortDescription(text, language),
    getMyShortDescription: (language) => telegram.getMyShortDescription(language),
  };
}

async function refusal(call: Promise<unknown>): Promise<Refusal> {
  const error = await call.then(
    (result) => expect.unreachable(`answered ${JSON.stringify(result)}`),
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(TelegramError);
  const { response, description, on } = error as TelegramError;
  return {
    error_code: response.error_code,
    description,
    method: (on as unknown as { method: string }).method,
    retry_after: response.parameters?.retry_after,
  };
}

async function waitOut<T>(call: () => Promise<T>, waits: number[]): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const seconds = error instanceof TelegramError ? error.parameters?.retry_after : undefined;
      if (seconds === undefined) throw error;
      waits.push(seconds);
      await sleep(seconds * 1_000);
    }
  }
}

function answering(bot: Telegraf, picture: Buffer, lateAnswers: Refusal[], waits: number[]): void {
  bot.command('photo', (ctx) =>
    ctx.replyWithPhoto(Input.fromBuffer(picture, 'p.png'), { caption: ctx.payload }),
  );
  bot.command('album', (ctx) =>
    ctx.replyWithMediaGroup([
      { type: 'photo', media: { source: picture, filename: '1.png' }, caption: 'one' },
      { type: 'photo', media: { source: picture, filename: '2.png' } },
    ]),
  );
  bot.command('say', (ctx) =>
    ctx.reply(ctx.payload, { reply_parameters: { message_id: ctx.message.message_id } }),
  );
  bot.command('menu', (ctx) =>
    ctx.reply(
      'pick one',
      Markup.inlineKeyboard([
        [Markup.button.callback('A', 'pick:a')],
        [Markup.button.callback('B', 'pick:b')],
      ]),
    ),
  );
  bot.action(/^pick:(.+)$/, async (ctx) => {
    const text = `picked ${ctx.match[1]}`;
    await ctx.answerCbQuery(text, { show_alert: true });
    lateAnswers.push(await refusal(ctx.answerCbQuery('again')));
    await ctx.editMessageText(text);
  });
  bot.command('keep', (ctx) => ctx.pinChatMessage(ctx.message.message_id));
  bot.command('again', (ctx) => ctx.forwardMessage(ctx.chat.id));
  bot.command('twin', (ctx) => ctx.copyMessage(ctx.chat.id));
  bot.command('go', (ctx) => ctx.leaveChat());
  bot.command('stream', async (ctx) => {
    const words = ctx.payload.split(' ');
    const { message_id } = await ctx.reply(words[0] as string);
    for (let n = 2; n <= words.length; n++) {
      const text = words.slice(0, n).join(' ');
      await waitOut(() => ctx.telegram.editMessageText(ctx.chat.id, message_id, undefined, text), waits);
    }
  });
}

export const telegraf: Library = {
  async start(made, root, picture): Promise<LibraryBot> {
    const bot = new Telegraf(made.token, { telegram: { apiRoot: root } });
    const received: object[] = [];
    const lateAnswers: Refusal[] = [];
    const waits: number[] = [];
    bot.use((ctx, next) => {
      received.push(ctx.update);
      return next();
    });
    answering(bot, picture, lateAnswers, waits);
    let ended: Promise<void> | undefined;
    await new Promise<void>((resolve) => {
      ended = bot.launch({ allowedUpdates: [...allUpdates] }, () => resolve());
    });
    const calls = callsOf(bot);
    return {
      calls,
      received,
      lateAnswers,
      waits,
      refusal,
      patiently: (call) => waitOut(() => call(calls), waits),
      async stop() {
        bot.stop();
        await ended;
      },
    };
  },
};

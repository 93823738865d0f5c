/**
 * A grammY bot that runs the steps with grammY's calls, contexts, filters and errors. The autoRetry plugin makes the
 * bot wait after an error 429.
 */
import { autoRetry } from '@grammyjs/auto-retry';
import { Api, Bot, GrammyError, InlineKeyboard, InputFile, InputMediaBuilder } from 'grammy';
import { expect } from 'vitest';
import {
  allUpdates,
  type Calls,
  type GivenFile,
  type GivenMedia,
  type Library,
  type LibraryBot,
  type MediaKind,
  type Refusal,
} from './library.js';

const inputOf = (file: GivenFile) =>
  typeof file === 'string' ? file : new InputFile(file.source, file.filename);

const mediaOf = ({ type, media, ...rest }: GivenMedia) =>
  type === 'voice'
    ? expect.unreachable('no voice in albums')
    : InputMediaBuilder[type](inputOf(media), rest as object);

function callsOf(api: Api, token: string, root: string): Calls {
  const send = {
    photo: api.sendPhoto.bind(api),
    video: api.sendVideo.bind(api),
    audio: api.sendAudio.bind(api),
    document: api.sendDocument.bind(api),
    animation: api.sendAnimation.bind(api),
    voice: api.sendVoice.bind(api),
  } satisfies Record<MediaKind, unknown>;
  const said = (language_code?: string) =>
    language_code === undefined ? {} : ({ language_code } as { language_code: 'en' });
  return {
    getMe: () => api.getMe(),
    sendMessage: (chat, text, extra) => api.sendMessage(chat, text, extra),
    sendMedia: (kind, chat, file, extra) => send[kind](chat, inputOf(file), extra),
    sendMediaGroup: (chat, media) => api.sendMediaGroup(chat, media.map(mediaOf) as never),
    getFile: (id) => api.getFile(id),
    async download(id) {
      const { file_path } = await api.getFile(id);
      const answer = await fetch(`${root}/file/bot${token}/${file_path}`);
      expect(answer.status).toBe(200);
      return Buffer.from(await answer.arrayBuffer());
    },
    editMessageText: (chat, id, text, extra) => api.editMessageText(chat, id, text, extra),
    editMessageCaption: (chat, id, caption, extra) => api.editMessageCaption(chat, id, { caption, ...extra }),
    editMessageMedia: (chat, id, media) => api.editMessageMedia(chat, id, mediaOf(media)),
    editMessageReplyMarkup: (chat, id, inline_keyboard) =>
      api.editMessageReplyMarkup(chat, id, { reply_markup: { inline_keyboard } }),
    deleteMessage: (chat, id) => api.deleteMessage(chat, id),
    deleteMessages: (chat, ids) => api.deleteMessages(chat, ids),
    forwardMessage: (chat, from, id, extra) => api.forwardMessage(chat, from, id, extra),
    forwardMessages: (chat, from, ids, extra) => api.forwardMessages(chat, from, ids, extra),
    copyMessage: (chat, from, id, extra) => api.copyMessage(chat, from, id, extra),
    copyMessages: (chat, from, ids, extra) => api.copyMessages(chat, from, ids, extra),
    pinChatMessage: (chat, id, extra) => api.pinChatMessage(chat, id, extra),
    unpinChatMessage: (chat, id) => api.unpinChatMessage(chat, id),
    unpinAllChatMessages: (chat) => api.unpinAllChatMessages(chat),
    getChat: (chat) => api.getChat(chat),
    getChatMember: (chat, user) => api.getChatMember(chat, user),
    getChatAdministrators: (chat) => api.getChatAdministrators(chat),
    getChatMemberCount: (chat) => api.getChatMemberCount(chat),
    leaveChat: (chat) => api.leaveChat(chat),
    answerCallbackQuery: (id, text) => api.answerCallbackQuery(id, { text }),
    setMyCommands: (commands, extra) => api.setMyCommands(commands, extra),
    getMyCommands: (extra) => api.getMyCommands(extra),
    deleteMyCommands: (extra) => api.deleteMyCommands(extra),
    setMyName: (name, language) => api.setMyName(name, said(language)),
    getMyName: (language) => api.getMyName(said(language)),
    setMyDescription: (text, language) => api.setMyDescription(text, said(language)),
    getMyDescription: (language) => api.getMyDescription(said(language)),
    setMyShortDescription: (text, language) => api.setMyShortDescription(text, said(language)),
    getMyShortDescription: (language) => api.getMyShortDescription(said(language)),
  };
}

async function refusal(call: Promise<unknown>): Promise<Refusal> {
  const error = await call.then(
    (result) => expect.unreachable(`answered ${JSON.stringify(result)}`),
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(GrammyError);
  const { error_code, description, method, parameters } = error as GrammyError;
  return { error_code, description, method, retry_after: parameters.retry_after };
}

function waitOut(api: { readonly config: Api['config'] }, waits: number[]): void {
  // autoRetry wraps this recorder, so the recorder sees each attempt.
  api.config.use(async (call, method, payload, signal) => {
    const answer = await call(method, payload, signal);
    if (!answer.ok && answer.error_code === 429) waits.push(answer.parameters?.retry_after ?? 0);
    return answer;
  });
  api.config.use(autoRetry());
}

function answering(bot: Bot, picture: Buffer, lateAnswers: Refusal[], waits: number[]): void {
  bot.command('photo', (ctx) => ctx.replyWithPhoto(new InputFile(picture, 'p.png'), { caption: ctx.match }));
  bot.command('album', (ctx) =>
    ctx.replyWithMediaGroup([
      InputMediaBuilder.photo(new InputFile(picture, '1.png'), { caption: 'one' }),
      InputMediaBuilder.photo(new InputFile(picture, '2.png')),
    ]),
  );
  bot.command('say', (ctx) => ctx.reply(ctx.match, { reply_parameters: { message_id: ctx.msgId } }));
  bot.command('menu', (ctx) =>
    ctx.reply('pick one', {
      reply_markup: new InlineKeyboard().text('A', 'pick:a').row().text('B', 'pick:b'),
    }),
  );
  bot.callbackQuery(/^pick:(.+)$/, async (ctx) => {
    const text = `picked ${ctx.match[1]}`;
    await ctx.answerCallbackQuery({ text, show_alert: true });
    lateAnswers.push(await refusal(ctx.answerCallbackQuery('again')));
    await ctx.editMessageText(text);
  });
  bot.command('keep', (ctx) => ctx.pinChatMessage(ctx.msgId));
  bot.command('again', (ctx) => ctx.forwardMessage(ctx.chat.id));
  bot.command('twin', (ctx) => ctx.copyMessage(ctx.chat.id));
  bot.command('go', (ctx) => ctx.leaveChat());
  bot.command('stream', async (ctx) => {
    waitOut(ctx.api, waits);
    const words = ctx.match.split(' ');
    const { message_id } = await ctx.reply(words[0] as string);
    for (let n = 2; n <= words.length; n++)
      await ctx.api.editMessageText(ctx.chat.id, message_id, words.slice(0, n).join(' '));
  });
}

export const grammy: Library = {
  async start(made, root, picture): Promise<LibraryBot> {
    const bot = new Bot(made.token, { client: { apiRoot: root } });
    const received: object[] = [];
    const lateAnswers: Refusal[] = [];
    const waits: number[] = [];
    const patient = new Api(made.token, { apiRoot: root });
    waitOut(patient, waits);
    bot.catch((error) => {
      throw error;
    });
    bot.use((ctx, next) => {
      received.push(ctx.update);
      return next();
    });
    answering(bot, picture, lateAnswers, waits);
    let ended: Promise<void> | undefined;
    await new Promise<void>((resolve) => {
      ended = bot.start({ allowed_updates: [...allUpdates], onStart: () => resolve() });
    });
    return {
      calls: callsOf(bot.api, made.token, root),
      received,
      lateAnswers,
      waits,
      refusal,
      patiently: (call) => call(callsOf(patient, made.token, root)),
      async stop() {
        await bot.stop();
        await ended;
      },
    };
  },
};

/** Adapters that run the feature bot with client libraries. The libraries are unmodified. Only the API root is set. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { createRequire } from 'node:module';
import { text as readText } from 'node:stream/consumers';
import { Bot as GramioBot, MediaUpload, webhookHandler } from 'gramio';
import { Bot as GrammyBot, InputFile as GrammyFile, webhookCallback } from 'grammy';
import { InputFile, Bot as NodeBot, nodeFrameworkWebhook } from 'node-telegram-bot-api';
import { TelegramBot as OlderNodeBot } from 'node-telegram-bot-api-v1';
import { MediaSource, Telegram } from 'puregram';
import { Telegraf } from 'telegraf';
import { FileOptions, TelegramBot } from 'typescript-telegram-bot-api';
import type { Certificate } from '../support/certificates.js';
import type { TestBot } from '../support/service.js';
import type { LibraryCalls, Update } from './feature_bot.js';

const require = createRequire(import.meta.url);

export interface Hook {
  readonly port: number;
  readonly certificate: Certificate;
  /** The path of the certificate, a PEM file. */
  readonly certificateFile: string;
  /** The path of the certificate's private key, a PEM file. */
  readonly keyFile: string;
  readonly secret: string;
}

export type Handle = (update: Update) => Promise<void>;

export interface FeatureLibrary extends LibraryCalls {
  /** Polls, and passes each update to `handle`. Resolves with a function that stops the polls. */
  poll(handle: Handle): Promise<() => unknown>;
  /** Serves the webhook, and calls setWebhook with the certificate. */
  serve(handle: Handle, hook: Hook): Promise<() => unknown>;
}

export const updateKinds = [
  'message',
  'callback_query',
  'inline_query',
  'chosen_inline_result',
  'poll_answer',
] as const;

/** Starts an HTTPS server. Returns a function that stops it. */
async function serve(
  { certificate, port }: Hook,
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<() => Promise<void>> {
  const server = createServer(certificate, listener);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeIdleConnections();
    await closed;
  };
}

const setHook = ({ call, file }: LibraryCalls, { port, certificate, secret }: Hook, path = '/hook') =>
  call('setWebhook', {
    url: `https://127.0.0.1:${port}${path}`,
    certificate: file(Buffer.from(certificate.cert), 'certificate.pem'),
    secret_token: secret,
    allowed_updates: updateKinds,
  });

// biome-ignore lint/suspicious/noExplicitAny: the methods of the libraries are called by name
type Methods = any;

const rootedFiles = (root: string, token: string) => (filePath: string) =>
  `${root}/file/bot${token}/${filePath}`;

function grammy({ token }: TestBot, root: string): FeatureLibrary {
  const bot = new GrammyBot(token, { client: { apiRoot: root } });
  const calls: LibraryCalls = {
    call: (method, params) => (bot.api.raw as Methods)[method](params),
    file: (bytes, name) => new GrammyFile(bytes, name),
    stored: (id) => id,
    description: (error) => (error as { description: string }).description,
    fileUrl: rootedFiles(root, token),
  };
  return {
    ...calls,
    async poll(handle) {
      bot.use(({ update }) => handle(update));
      let ended: Promise<void> | undefined;
      await new Promise<void>((resolve) => {
        ended = bot.start({ allowed_updates: updateKinds, onStart: () => resolve() });
      });
      return async () => {
        await bot.stop();
        await ended;
      };
    },
    async serve(handle, hook) {
      bot.use(({ update }) => handle(update));
      const stop = await serve(hook, webhookCallback(bot, 'https', { secretToken: hook.secret }));
      await setHook(calls, hook);
      return stop;
    },
  };
}

function telegraf({ token }: TestBot, root: string): FeatureLibrary {
  const bot = new Telegraf(token, { telegram: { apiRoot: root } });
  const calls: LibraryCalls = {
    call: (method, params) => {
      // Passes `reply_parameters` as JSON text, because the library drops objects of unknown types in a call with an
      // uploaded file.
      const { reply_parameters: reply, ...rest } = params;
      const written = reply ? { ...rest, reply_parameters: JSON.stringify(reply) } : rest;
      return (bot.telegram as Methods).callApi(method, written);
    },
    file: (source, filename) => ({ source, filename }),
    stored: (id) => id,
    description: (error) => (error as { description: string }).description,
    fileUrl: rootedFiles(root, token),
  };
  return {
    ...calls,
    async poll(handle) {
      bot.use(({ update }) => handle(update));
      let ended: Promise<void> | undefined;
      await new Promise<void>((resolve) => {
        ended = bot.launch({ allowedUpdates: [...updateKinds] }, () => resolve());
      });
      return async () => {
        bot.stop();
        await ended;
      };
    },
    async serve(handle, hook) {
      bot.use(({ update }) => handle(update));
      const stop = await serve(hook, bot.webhookCallback('/hook', { secretToken: hook.secret }));
      await setHook(calls, hook);
      return stop;
    },
  };
}

function nodeTelegramBotApi({ token }: TestBot, root: string): FeatureLibrary {
  const bot = new NodeBot(token, { apiRoot: root });
  bot.catch((error) => {
    throw error;
  });
  const calls: LibraryCalls = {
    call: (method, params) => (bot.api as Methods)[method](params),
    file: (bytes, filename) => new InputFile(bytes, { filename }),
    stored: (id) => id,
    description: (error) => (error as { description: string }).description,
    fileUrl: rootedFiles(root, token),
  };
  return {
    ...calls,
    async poll(handle) {
      bot.use(({ update }) => handle(update));
      const ended = bot.startPolling(undefined, { timeout: 30, allowedUpdates: [...updateKinds] });
      return async () => {
        bot.stop();
        await ended;
      };
    },
    async serve(handle, hook) {
      bot.use(({ update }) => handle(update));
      const stop = await serve(hook, nodeFrameworkWebhook(bot, { secretToken: hook.secret }) as Methods);
      await setHook(calls, hook);
      return stop;
    },
  };
}

/** The positional parameters of each method. Used for libraries that have positional parameters. */
const positions: Readonly<Record<string, readonly string[]>> = {
  sendMessage: ['chat_id', 'text'],
  sendPhoto: ['chat_id', 'photo'],
  sendDocument: ['chat_id', 'document'],
  sendMediaGroup: ['chat_id', 'media'],
  getFile: ['file_id'],
  sendPoll: ['chat_id', 'question', 'options'],
  stopPoll: ['chat_id', 'message_id'],
  restrictChatMember: ['chat_id', 'user_id'],
  promoteChatMember: ['chat_id', 'user_id'],
  getChatAdministrators: ['chat_id'],
  setChatTitle: ['chat_id', 'title'],
  setChatDescription: ['chat_id', 'description'],
  setChatPhoto: ['chat_id', 'photo'],
  pinChatMessage: ['chat_id', 'message_id'],
  getChat: ['chat_id'],
  getChatMember: ['chat_id', 'user_id'],
  banChatMember: ['chat_id', 'user_id'],
  editMessageText: ['text'],
  answerCallbackQuery: ['callback_query_id'],
  answerInlineQuery: ['inline_query_id', 'results'],
  setWebhook: ['url'],
};

/** Returns two groups of parameters of a method: the positional parameters, and all other parameters. */
function positional(method: string, params: Record<string, unknown>): [unknown[], Record<string, unknown>] {
  const names = positions[method] ?? [];
  const rest = Object.entries(params).filter(([name]) => !names.includes(name));
  return [names.map((name) => params[name]), Object.fromEntries(rest)];
}

class NamedFile {
  readonly bytes: Buffer;
  readonly name: string;
  constructor(bytes: Buffer, name: string) {
    this.bytes = bytes;
    this.name = name;
  }
}

function olderNodeTelegramBotApi({ token }: TestBot, root: string): FeatureLibrary {
  const begin = (options: object) => new OlderNodeBot(token, { baseApiUrl: root, ...options });
  let bot = begin({});
  const listen = (handle: Handle) => {
    for (const kind of updateKinds) bot.on(kind, (content: unknown) => handle({ [kind]: content }));
  };
  const calls: LibraryCalls = {
    call(method, params) {
      const [first, rest] = positional(method, params);
      const found = first.find((each) => each instanceof NamedFile);
      const bytes = first.map((each) => (each instanceof NamedFile ? each.bytes : each));
      return (bot as Methods)[method](...bytes, rest, found && { filename: found.name });
    },
    file: (bytes, name) => new NamedFile(bytes, name),
    stored: (id) => id,
    description: (error) =>
      (error as { response: { body: { description: string } } }).response.body.description,
    fileUrl: rootedFiles(root, token),
  };
  return {
    ...calls,
    async poll(handle) {
      bot = begin({ polling: { interval: 0, params: { timeout: 1, allowed_updates: [...updateKinds] } } });
      listen(handle);
      return () => bot.stopPolling({ cancel: true });
    },
    async serve(handle, hook) {
      const { port, certificate, secret, certificateFile } = hook;
      const webHook = { host: '127.0.0.1', port, https: certificate, secretToken: secret };
      bot = begin({ webHook });
      listen(handle);
      await bot.openWebHook();
      await bot.setWebHook(
        `https://127.0.0.1:${port}/bot${token}`,
        { certificate: certificateFile, secret_token: secret, allowed_updates: [...updateKinds] } as Methods,
        {},
      );
      return () => bot.closeWebHook();
    },
  };
}

function gramio({ token }: TestBot, root: string): FeatureLibrary {
  const bot = new GramioBot(token, { api: { baseURL: `${root}/bot` } });
  const calls: LibraryCalls = {
    call: (method, params) => (bot.api as Methods)[method](params),
    file: (bytes, name) => MediaUpload.buffer(bytes, name),
    stored: (id) => id,
    description: (error) => (error as Error).message,
    fileUrl: rootedFiles(root, token),
  };
  const listen = (handle: Handle) =>
    bot.use((context: Methods) => handle(context.update)).onError(({ error }) => Promise.reject(error));
  return {
    ...calls,
    async poll(handle) {
      listen(handle);
      await bot.start({ allowedUpdates: [...updateKinds], longPolling: { timeout: 1 } });
      return () => bot.stop();
    },
    async serve(handle, hook) {
      listen(handle);
      const handler = webhookHandler(bot, 'http', { secretToken: hook.secret, wait: true } as Methods);
      const stop = await serve(hook, handler as Methods);
      await setHook(calls, hook);
      return stop;
    },
  };
}

function puregram({ token }: TestBot, root: string): FeatureLibrary {
  const telegram = new Telegram({ token, apiBaseUrl: `${root}/bot`, allowedUpdates: [...updateKinds] });
  const calls: LibraryCalls = {
    call: (method, params) => (telegram.api as Methods)[method](params),
    file: (bytes, filename) => MediaSource.buffer(bytes, { filename }),
    stored: (id) => MediaSource.fileId(id),
    description: (error) => (error as Error).message,
    fileUrl: rootedFiles(root, token),
  };
  const listen = (handle: Handle) =>
    telegram.updates.use(((context: Methods) => handle(context.update)) as Methods);
  return {
    ...calls,
    async poll(handle) {
      listen(handle);
      await telegram.updates.startPolling({ timeout: 1 });
      return () => telegram.updates.stopPolling();
    },
    async serve(handle, hook) {
      listen(handle);
      const stop = await serve(hook, telegram.updates.getWebhookMiddleware(hook.secret));
      await setHook(calls, hook);
      return stop;
    },
  };
}

function typescriptTelegramBotApi({ token }: TestBot, root: string): FeatureLibrary {
  const options = { botToken: token, baseURL: root, allowedUpdates: [...updateKinds], autoRetry: false };
  const bot = new TelegramBot(options);
  const calls: LibraryCalls = {
    call: (method, params) => (bot as Methods)[method](params),
    file: (bytes, filename) => new FileOptions(bytes, { filename }),
    stored: (id) => id,
    description: (error) => (error as { response: { description: string } }).response.description,
    fileUrl: rootedFiles(root, token),
  };
  const listen = (handle: Handle) => {
    for (const kind of updateKinds) bot.on(kind, (content: unknown) => handle({ [kind]: content }));
  };
  return {
    ...calls,
    async poll(handle) {
      listen(handle);
      await bot.startPolling();
      return () => bot.stopPolling();
    },
    async serve(handle, hook) {
      listen(handle);
      const stop = await serve(hook, async (request, response) => {
        await bot.processUpdate(JSON.parse(await readText(request)));
        response.end();
      });
      await setHook(calls, hook);
      return stop;
    },
  };
}

const asCamel = (name: string) => name.replace(/_(\w)/g, (_all, letter: string) => letter.toUpperCase());

/** The library has no functions for these methods, so they are called through its general request function. */
const unknownToTelebot = ['sendPoll', 'stopPoll'];

function telebot({ token }: TestBot, root: string): FeatureLibrary {
  const TeleBot = require('telebot');
  const bot = new TeleBot({ token, allowedUpdates: updateKinds, polling: { interval: 20, timeout: 1 } });
  bot.api = `${root}/bot${token}`;
  bot.fileLink = `${root}/file/bot${token}/`;
  bot.logging = false;
  const calls: LibraryCalls = {
    async call(method, params) {
      if (unknownToTelebot.includes(method)) {
        const form = Object.entries(params).map(([name, value]) => [
          name,
          typeof value === 'object' ? JSON.stringify(value) : value,
        ]);
        return (await bot.request(`/${method}`, Object.fromEntries(form))).result;
      }
      if (method === 'answerInlineQuery') {
        const answers = bot.answerList(params.inline_query_id, { cacheTime: params.cache_time });
        for (const result of params.results as object[]) answers.addArticle(result);
        return bot.answerInlineQuery(answers);
      }
      const [first, others] = positional(method, params);
      const file = first.find((each) => each instanceof NamedFile);
      const plain = first.map((each) => (each instanceof NamedFile ? each.bytes : each));
      const { reply_parameters: reply, permissions, ...rest } = others as Methods;
      const named = Object.entries({ ...rest, ...permissions }).map(([name, value]) => [
        asCamel(name),
        value,
      ]);
      const options = Object.fromEntries(named);
      if (reply) options.replyToMessage = reply.message_id;
      if (file) options.fileName = file.name;
      if (method === 'banChatMember') return bot.kickChatMember(...plain, options);
      if (method !== 'editMessageText') return bot[method](...plain, options);
      const { inlineMessageId: inlineMsgId, ...target } = options;
      return bot.editMessageText({ ...target, inlineMsgId }, params.text, options);
    },
    file: (bytes, name) => new NamedFile(bytes, name),
    stored: (id) => id,
    description: (error) => (error as { description: string }).description,
    fileUrl: (filePath) => `${bot.fileLink}${filePath}`,
  };
  const listen = (handle: Handle) =>
    bot.on('update', (updates: Update[]) => Promise.all(updates.map(handle)));
  return {
    ...calls,
    async poll(handle) {
      listen(handle);
      bot.start();
      return () => bot.stop();
    },
    async serve(handle, hook) {
      listen(handle);
      // Serves the updates in the test, because the library never closes its own server.
      const stop = await serve(hook, async (request, response) => {
        await bot.receiveUpdates([JSON.parse(await readText(request))]);
        response.end();
      });
      await bot.setWebhook(`https://127.0.0.1:${hook.port}/hook`, hook.certificateFile, updateKinds);
      return stop;
    },
  };
}

export const libraries: Readonly<Record<string, (made: TestBot, root: string) => FeatureLibrary>> = {
  grammy,
  telegraf,
  'node-telegram-bot-api': nodeTelegramBotApi,
  'node-telegram-bot-api-v1': olderNodeTelegramBotApi,
  gramio,
  puregram,
  'typescript-telegram-bot-api': typescriptTelegramBotApi,
  telebot,
};

/** Bots that are written with unmodified client libraries, and receive updates at an HTTPS webhook or by polling. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { Bot, InlineKeyboard, InputFile, webhookCallback } from 'grammy';
import { Markup, Telegraf } from 'telegraf';
import { message } from 'telegraf/filters';
import type { Certificate } from '../support/certificates.js';
import type { TestBot } from '../support/service.js';

export interface Pushed {
  readonly port: number;
  readonly certificate: Certificate;
  readonly secret: string;
}

/** A running bot. `received` has the texts that it received, in order and without commands. */
export interface Running {
  readonly received: readonly string[];
  deleteWebhook(): Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * Each bot answers `/ping <words>` with `pong <words>` and `/menu` with a button `pick:a`. The bot answers a press of
 * the button with `picked a`, and also replaces the text of the message by `picked a`.
 */
export interface WebhookLibrary {
  /** Serves the bot at `https://127.0.0.1:<port>/hook`. Sets the webhook through the library, with the certificate. */
  push(made: TestBot, root: string, to: Pushed): Promise<Running>;
  poll(made: TestBot, root: string): Promise<Running>;
  /** The status with which the library refuses a request with a wrong secret token. */
  readonly turnsAway: number;
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  // Closes idle connections. Requests in flight are still answered.
  server.closeIdleConnections();
  await closed;
}

function grammyBot(made: TestBot, root: string) {
  const received: string[] = [];
  const bot = new Bot(made.token, { client: { apiRoot: root } });
  bot.catch((error) => {
    throw error;
  });
  bot.command('start', () => undefined);
  bot.command('ping', (ctx) => ctx.reply(`pong ${ctx.match}`));
  bot.command('menu', (ctx) =>
    ctx.reply('pick one', { reply_markup: new InlineKeyboard().text('A', 'pick:a') }),
  );
  bot.callbackQuery(/^pick:(.+)$/, async (ctx) => {
    await ctx.answerCallbackQuery(`picked ${ctx.match[1]}`);
    await ctx.editMessageText(`picked ${ctx.match[1]}`);
  });
  bot.on('message:text', (ctx) => void received.push(ctx.message.text));
  return { bot, received };
}

export const grammyWebhook: WebhookLibrary = {
  turnsAway: 401,
  async push(made, root, { port, certificate, secret }) {
    const { bot, received } = grammyBot(made, root);
    const server = createServer(certificate, webhookCallback(bot, 'https', { secretToken: secret }));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    await bot.api.setWebhook(`https://127.0.0.1:${port}/hook`, {
      certificate: new InputFile(Buffer.from(certificate.cert), 'certificate.pem'),
      secret_token: secret,
    });
    return { received, deleteWebhook: () => bot.api.deleteWebhook(), stop: () => close(server) };
  },
  async poll(made, root) {
    const { bot, received } = grammyBot(made, root);
    let ended: Promise<void> | undefined;
    await new Promise<void>((resolve) => {
      ended = bot.start({ onStart: () => resolve() });
    });
    return {
      received,
      deleteWebhook: () => bot.api.deleteWebhook(),
      async stop() {
        await bot.stop();
        await ended;
      },
    };
  },
};

function telegrafBot(made: TestBot, root: string) {
  const received: string[] = [];
  const bot = new Telegraf(made.token, { telegram: { apiRoot: root } });
  bot.start(() => undefined);
  bot.command('ping', (ctx) => ctx.reply(`pong ${ctx.payload}`));
  bot.command('menu', (ctx) =>
    ctx.reply('pick one', Markup.inlineKeyboard([Markup.button.callback('A', 'pick:a')])),
  );
  bot.action(/^pick:(.+)$/, async (ctx) => {
    await ctx.answerCbQuery(`picked ${ctx.match[1]}`);
    await ctx.editMessageText(`picked ${ctx.match[1]}`);
  });
  bot.on(message('text'), (ctx) => void received.push(ctx.message.text));
  return { bot, received };
}

export const telegrafWebhook: WebhookLibrary = {
  turnsAway: 403,
  async push(made, root, { port, certificate, secret }) {
    const { bot, received } = telegrafBot(made, root);
    await bot.launch({
      webhook: {
        ...{ domain: `https://127.0.0.1:${port}`, path: '/hook', host: '127.0.0.1', port },
        ...{ tlsOptions: certificate, secretToken: secret },
        certificate: { source: Buffer.from(certificate.cert), filename: 'certificate.pem' },
      },
    });
    const { webhookServer } = bot as unknown as { readonly webhookServer: Server };
    return {
      received,
      deleteWebhook: () => bot.telegram.deleteWebhook(),
      async stop() {
        const closed = once(webhookServer, 'close');
        bot.stop();
        webhookServer.closeIdleConnections();
        await closed;
      },
    };
  },
  async poll(made, root) {
    const { bot, received } = telegrafBot(made, root);
    let ended: Promise<void> | undefined;
    await new Promise<void>((resolve) => {
      ended = bot.launch(() => resolve());
    });
    return {
      received,
      deleteWebhook: () => bot.telegram.deleteWebhook(),
      async stop() {
        bot.stop();
        await ended;
      },
    };
  },
};

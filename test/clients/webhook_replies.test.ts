/** Tests unmodified grammY and Telegraf bots that put a method call into their webhook answer. */
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Bot, InputFile, webhookCallback } from 'grammy';
import { Telegraf } from 'telegraf';
import { request } from 'undici';
import { afterAll, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import type { Service, TestBot, TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { expectEcho } from './scenario.js';

const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
let service: Service;
let user: TestUser;
const servers: Server[] = [];

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('wanda');
});
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(handle: RequestListener): Promise<string> {
  const server = createServer(certificate, handle).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

async function newBot(): Promise<TestBot> {
  const made = await service.newBot(user, 'hooked');
  await service.openChat(user, made);
  return made;
}

const file = () => Buffer.from(certificate.cert);

async function overHttp(method: string): Promise<number> {
  const { body } = await request(`${service.fronts[0].url}/metrics`);
  const line = new RegExp(`^petrel_requests_total\\{call="${method}",status="200"\\} (\\d+)$`, 'm');
  const found = line.exec(await body.text());
  return Number(found?.[1] ?? 0);
}

test('a grammY bot sends its reply in the webhook answer', async () => {
  const made = await newBot();
  const bot = new Bot(made.token, {
    client: { apiRoot: service.fronts[0].url, canUseWebhookReply: (method) => method === 'sendMessage' },
  });
  bot.command('start', () => undefined);
  bot.on('message:text', (ctx) => ctx.reply(`echo: ${ctx.message.text}`));
  const url = await serve(webhookCallback(bot, 'https'));
  await bot.api.setWebhook(url, { certificate: new InputFile(file(), 'cert.pem') });
  const before = await overHttp('sendMessage');
  await expectEcho(service, user, made, 5);
  expect(await overHttp('sendMessage')).toBe(before);
});

test('a Telegraf bot sends its call in the webhook answer', async () => {
  const made = await newBot();
  const bot = new Telegraf(made.token, {
    telegram: { apiRoot: service.fronts[0].url, webhookReply: true },
  });
  bot.start(() => undefined);
  bot.on('text', async (ctx) => {
    await ctx.reply(`echo: ${ctx.message.text}`);
    // Telegraf puts this second call into the webhook answer. It sends the first call, `reply`, in a separate request.
    await ctx.sendChatAction('typing');
  });
  const url = await serve(bot.webhookCallback('/hook'));
  await bot.telegram.setWebhook(url, { certificate: { source: file() } });
  const before = await overHttp('sendChatAction');
  await expectEcho(service, user, made, 5);
  expect(await overHttp('sendChatAction')).toBe(before);
});

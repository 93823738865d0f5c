/**
 * Tests the webhook modes of grammY and Telegraf over HTTPS, with an uploaded certificate, a secret token and a switch
 * to polling.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { makeCertificate } from '../support/certificates.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { type Balancer, startBalancer } from './balancer.js';
import { type EventSource, eventually, openEvents } from './event_source.js';
import { grammyWebhook, type Pushed, type Running, telegrafWebhook } from './webhook_bots.js';

const certificate = makeCertificate({ addresses: ['127.0.0.1'] });

let service: Service;
let balancer: Balancer;
let user: TestUser;
let events: EventSource;

onSharedService(async (running) => {
  service = running;
  balancer = await startBalancer(service.fronts);
  user = await service.newUser('wendy');
  events = await openEvents(service.fronts[1]?.url ?? '', user.token);
});
afterAll(async () => {
  events?.cut();
  await balancer?.close();
});

describe.each([
  ['grammY', grammyWebhook],
  ['Telegraf', telegrafWebhook],
])('%s', (_name, library) => {
  let made: TestBot;
  let to: Pushed;
  let running: Running | undefined;
  let said = 0;

  const say = (text: string) =>
    resultOf(service.app(user, 'POST', `/api/chats/${made.id}/messages`, { text }, said++ % 2));
  const answered = (text: string) =>
    events.received(
      ({ event, data }) => event === 'message' && data.chat?.id === made.id && data.text === text,
    );

  beforeAll(async () => {
    made = await service.newBot(user, 'pushed');
    to = { port: await freePort(), certificate, secret: 'Only_the-service-knows' };
    await service.openChat(user, made);
    running = await library.push(made, balancer.url, to);
  });
  afterAll(() => running?.stop());

  test('a bot library sets a webhook with an uploaded certificate', async () => {
    expect(await resultOf(service.bot(made, 'getWebhookInfo'))).toMatchObject({
      url: `https://127.0.0.1:${to.port}/hook`,
      has_custom_certificate: true,
    });
  });

  test('a bot with a webhook answers commands', async () => {
    await say('/ping one two');
    await answered('pong one two');
    await say(`/ping@${made.username} three`);
    await answered('pong three');
  });

  test('a bot with a webhook answers a button press and edits the message', async () => {
    await say('/menu');
    const { data: shown } = await answered('pick one');
    const path = `/api/chats/${made.id}/messages/${shown.message_id}/callback`;
    const { callback_query_id } = await resultOf(service.app(user, 'POST', path, { data: 'pick:a' }));
    const answer = await events.received(
      ({ event, data }) => event === 'callback_answer' && data.callback_query_id === callback_query_id,
    );
    expect(answer.data.text).toBe('picked a');
    const edited = await events.received(
      ({ event, data }) => event === 'edited_message' && data.message_id === shown.message_id,
    );
    expect(edited.data.text).toBe('picked a');
  });

  test('a bot library refuses a webhook request without the right secret token', async () => {
    const agent = new Agent({ connect: { ca: certificate.cert } });
    const body = JSON.stringify({
      update_id: 1,
      message: {
        ...{ message_id: 1, date: 1, text: 'forged' },
        ...{ from: { id: 1, is_bot: false, first_name: 'M' }, chat: { id: 1, type: 'private' } },
      },
    });
    const post = async (headers: Record<string, string>) => {
      const answer = await request(`https://127.0.0.1:${to.port}/hook`, {
        ...{ method: 'POST', dispatcher: agent, body },
        headers: { 'content-type': 'application/json', ...headers },
      });
      await answer.body.dump();
      return answer.statusCode;
    };
    expect(await post({})).toBe(library.turnsAway);
    expect(await post({ 'x-telegram-bot-api-secret-token': 'Only_the-service-guesses' })).toBe(
      library.turnsAway,
    );
    expect(running?.received).not.toContain('forged');
    await agent.destroy();
  });

  test('if a bot refused updates because of a wrong secret, the updates are delivered after the secret is corrected', async () => {
    const url = `https://127.0.0.1:${to.port}/hook`;
    const params = { url, certificate: certificate.cert };
    await resultOf(service.bot(made, 'setWebhook', { ...params, secret_token: 'another' }));
    await say('kept for the right secret');
    await eventually(async () =>
      expect(await resultOf(service.bot(made, 'getWebhookInfo'))).toMatchObject({
        last_error_message: expect.stringContaining(String(library.turnsAway)),
        pending_update_count: 1,
      }),
    );
    expect(running?.received).not.toContain('kept for the right secret');
    await resultOf(service.bot(made, 'setWebhook', { ...params, secret_token: to.secret }));
    await eventually(() => expect(running?.received).toContain('kept for the right secret'));
  });

  test('a bot library accepts a webhook ping without an error, and does not handle the ping as an update', async () => {
    const received = running?.received.length;
    const shown = await resultOf(service.app(user, 'POST', `/api/me/bots/${made.id}/webhook/ping`));
    expect(shown).toMatchObject({ delivered: true, status: 200, error: null });
    expect(running?.received).toHaveLength(received ?? -1);
    await say('/ping after a test');
    await answered('pong after a test');
  });

  test('a bot library answers updates that come over a webhook route', async () => {
    await resultOf(service.bot(made, 'deleteWebhook'));
    const receiver = { url: `https://127.0.0.1:${to.port}/hook`, certificate: certificate.cert };
    const route = { name: 'library', ...receiver, secret_token: to.secret };
    await resultOf(service.bot(made, 'setWebhookRoute', route));
    await say('/ping over a route');
    await answered('pong over a route');
    expect(await resultOf(service.bot(made, 'getWebhookInfo'))).toMatchObject({ url: '' });
    await resultOf(service.bot(made, 'deleteWebhookRoute', { name: 'library' }));
    await resultOf(service.bot(made, 'setWebhook', { ...receiver, secret_token: to.secret }));
  });

  test('while a bot switches between webhook and polling under load, the bot gets each message once and in order', async () => {
    const words: string[] = [];
    let saying = true;
    const load = (async () => {
      while (saying) {
        words.push(`word ${words.length}`);
        await say(words.at(-1) as string);
        await sleep(5);
      }
    })();
    const all: string[] = [];
    const heardSome = async (count: number) => {
      await eventually(() => expect(running?.received.length).toBeGreaterThan(count));
    };
    const turnOver = async (next: () => Promise<Running>) => {
      const last = running;
      await last?.stop();
      all.push(...(last?.received ?? []));
      running = undefined;
      running = await next();
    };
    try {
      await heardSome((running?.received.length ?? 0) + 20);
      await running?.deleteWebhook();
      await turnOver(() => library.poll(made, balancer.url));
      await heardSome(20);
      await turnOver(() => library.push(made, balancer.url, to));
      await heardSome(20);
      // Stops the server before deleteWebhook, like a failed machine. Updates that the server does not answer stay
      // pending.
      await turnOver(() => library.poll(made, balancer.url));
      await heardSome(20);
    } finally {
      saying = false;
      await load;
    }
    await say('/ping last');
    await answered('pong last');
    all.push(...(running?.received ?? []));
    expect(all.filter((text) => text.startsWith('word '))).toEqual(words);
  });
});

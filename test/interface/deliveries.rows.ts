/** Interface tests of deliveries to webhooks (interface §4.4, §6), and of the limits of webhooks (§§7, 8). */
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import {
  failed,
  info,
  infoOf,
  nothingWaits,
  polling,
  pushed,
  pushing,
  say,
  set,
  textsOf,
  wasSet,
} from './hooked.js';
import type { Hook } from './hooks.js';
import { bad, ok, type Row, row } from './row.js';
import { number, personMessage, privateChat } from './shapes.js';

const hex = expect.stringMatching(/^[0-9a-f]{64}$/);

const deliveries: readonly Row[] = [
  row({
    title:
      '§4.4 POST to the webhook URL: Content-Type, X-Service-Bot-Api-Secret-Token, X-Service-Signature, an Update',
    arrange: polling(),
    act: (c, at) => set(c, at, { secret_token: 'The_secret-1' }),
    answer: wasSet,
    async after(c, at) {
      const message_id = await say(c, at, 'Hello');
      await pushed(1, at);
      const [{ method, headers, body, update }] = at.hook.arrivals as [Hook['arrivals'][0]];
      expect(method).toBe('POST');
      expect(update).toEqual({
        update_id: number,
        message: { ...personMessage(c.ann, privateChat(c.ann), message_id), text: 'Hello' },
      });
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'x-service-bot-api-secret-token': 'The_secret-1',
        'x-service-signature': createHmac('sha256', 'The_secret-1').update(body).digest('hex'),
      });
    },
  }),
  row({
    title: '§4.4 POST to the webhook URL: without secret_token → no secret header, but a signature',
    arrange: polling(),
    act: (c, at) => set(c, at),
    answer: wasSet,
    async after(c, at) {
      await say(c, at, 'Hello');
      await pushed(1, at);
      const { headers } = at.hook.arrivals[0] as Hook['arrivals'][0];
      expect(headers).not.toHaveProperty('x-service-bot-api-secret-token');
      expect(headers['x-service-signature']).toEqual(hex);
    },
  }),
  row({
    title:
      '§6 Delivery rules 1 and 2: a POST with an Update, answered with 200 → the update is no longer pending',
    arrange: pushing(),
    async act(c, at) {
      await say(c, at, 'once');
      await pushed(1, at);
      await nothingWaits(c, at.bot);
      return c.get(at.bot, 'getWebhookInfo');
    },
    answer: (at) => ok(infoOf(at, {})),
    async after(c, at) {
      await say(c, at, 'next');
      await pushed(2, at);
      expect(textsOf(at)).toEqual(['once', 'next']);
    },
  }),
  ...([500, 503, 'hang up'] as const).map((reply) =>
    row({
      title: `§6 Delivery rules 3 and 4: ${reply} → the same update is sent again, with the same update_id and body`,
      arrange: pushing((_, index) => (index < 2 ? reply : 200)),
      async act(c, at) {
        await say(c, at, 'again');
        await pushed(3, at);
        await nothingWaits(c, at.bot);
        return c.get(at.bot, 'getWebhookInfo');
      },
      answer: (at) =>
        ok(
          infoOf(at, {
            last_error_date: number,
            last_error_message: expect.stringMatching(reply === 'hang up' ? /^Connection/ : `${reply}`),
          }),
        ),
      async after(_, at) {
        expect(new Set(at.hook.arrivals.map(({ body }) => body.toString())).size).toBe(1);
        expect(at.hook.arrivals).toHaveLength(3);
      },
    }),
  ),
  row({
    title: '§6 Delivery rules 5: getUpdates after deleteWebhook → the updates that were not delivered',
    async arrange(c) {
      const at = await pushing(() => 'hang up')(c);
      const message_id = await say(c, at, 'polled');
      await failed(c, at.bot);
      await c.result(at.bot, 'deleteWebhook');
      await c.updates(at.bot, 1);
      return { ...at, message_id };
    },
    act: (c, { bot }) => c.call(bot, 'getUpdates'),
    answer: ({ message_id }, c) =>
      ok([
        {
          update_id: number,
          message: { ...personMessage(c.ann, privateChat(c.ann), message_id), text: 'polled' },
        },
      ]),
  }),
];

const urls = [
  ...[
    ['§7 a non-HTTPS webhook URL', 'http://example.com/', 'An HTTPS URL must be provided for webhook'],
    [
      '§8 Webhook URL scheme: HTTPS only, http',
      'http://example.com/',
      'An HTTPS URL must be provided for webhook',
    ],
    [
      '§8 Webhook URL scheme: HTTPS only, ftp',
      'ftp://example.com/',
      'An HTTPS URL must be provided for webhook',
    ],
    [
      '§8 Webhook address: the local loopback address',
      'https://127.0.0.1/',
      'IP address 127.0.0.1 is reserved',
    ],
    [
      '§8 Webhook address: the local loopback address, as a number',
      'https://2130706433/',
      'IP address 127.0.0.1 is reserved',
    ],
    [
      '§8 Webhook address: the local loopback address of IPv6',
      'https://[::1]/',
      'IP address ::1 is reserved',
    ],
  ].map(([what, url, text]) =>
    row({
      title: `${what} → refused, the webhook is unchanged`,
      arrange: pushing(),
      act: (c, at) => set(c, at, { url }),
      answer: () => bad(`bad webhook: ${text}`),
    }),
  ),
];

const bounds: readonly Row[] = [
  ...[1, 100].map((max_connections) =>
    row({
      title: `§8 max_connections: ${max_connections} → set`,
      arrange: polling(),
      act: (c, at) => set(c, at, { max_connections }),
      answer: wasSet,
      after: async (c, at) => expect(await info(c, at.bot)).toEqual(infoOf(at, { max_connections })),
    }),
  ),
  ...[0, 101].map((max_connections) =>
    row({
      title: `§8 max_connections: ${max_connections} → refused`,
      arrange: pushing(),
      act: (c, at) => set(c, at, { max_connections }),
      answer: () => bad('max_connections must be between 1 and 100'),
    }),
  ),
  row({
    title:
      '§8 Webhook request size: up to 10 MB, the largest message in reply to another → the pushed body equals the polled update',
    async arrange(c) {
      const at = await polling()(c);
      const path = `/api/chats/${at.bot.id}/messages`;
      const text = '\u{1F44B}'.repeat(2_048);
      const { message_id } = await c.appResult(c.ann, 'POST', path, { text });
      await c.appResult(c.ann, 'POST', path, { text, reply_to_message_id: message_id });
      const [, polled] = await c.updates(at.bot, 2);
      expect(polled.message.reply_to_message.text).toBe(text);
      return { ...at, polled };
    },
    act: (c, at) => set(c, at),
    answer: wasSet,
    async after(_, at) {
      await pushed(2, at);
      expect(at.hook.arrivals[1]?.body.toString()).toBe(JSON.stringify(at.polled));
    },
  }),
];

/** One receiver does not answer the first request at all. Another receiver answers after 58 seconds. */
const responseTime = row({
  title:
    '§8 Webhook response time: 60 seconds; an answer after 58 is accepted, and without an answer after 60 the update is sent again',
  early: true,
  async arrange(c) {
    const silent = await pushing((_, index) => (index === 0 ? 'silence' : 200))(c);
    const slow = await pushing(() => sleep(58_000, 200))(c);
    await Promise.all([silent, slow].map((at) => say(c, at, 'Are you there?')));
    await sleep(60_000);
    await pushed(2, silent);
    await nothingWaits(c, silent.bot);
    await nothingWaits(c, slow.bot);
    return { ...silent, slow };
  },
  act: (c, { bot }) => c.get(bot, 'getWebhookInfo'),
  answer: (at) => ok(infoOf(at, { last_error_date: number, last_error_message: 'Read timeout expired' })),
  async after(c, { hook, slow }) {
    const [first, second] = hook.arrivals;
    expect(second?.body).toEqual(first?.body);
    const waited_s = ((hook.givenUp[0] ?? 0) - (first?.at ?? 0)) / 1_000;
    expect(waited_s).toBeGreaterThan(59);
    expect(waited_s).toBeLessThan(70);
    expect(slow.hook.arrivals).toHaveLength(1);
    expect(await info(c, slow.bot)).toEqual(infoOf(slow, {}));
  },
});

export const deliveryRows: readonly Row[] = [...deliveries, ...urls, ...bounds, responseTime];

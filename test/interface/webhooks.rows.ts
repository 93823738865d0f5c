/** Rows on webhooks: what is set (interface §§2, 3, 4.3, 6), what is pushed (§4.4, §6), and their limits (§§7, 8). */
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { eventually } from '../clients/event_source.js';
import type { Bot, Case, Direct } from './case.js';
import { type Hook, hookAddress } from './hooks.js';
import { bad, ok, type Row, refusal, row } from './row.js';
import { number, personMessage, privateChat } from './shapes.js';

interface Hooked extends Direct {
  readonly hook: Hook;
}

const form = { 'content-type': 'application/x-www-form-urlencoded' };
const told = (description: string) => ({ ...ok(true), description });
const wasSet = () => told('Webhook was set');
const wasDeleted = () => told('Webhook was deleted');
const conflict = refusal(
  409,
  "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
);

/** A bot that polls, and a receiver. */
const polling =
  (answer?: Hook['answer']) =>
  async (c: Case): Promise<Hooked> => ({ ...(await c.direct()), hook: c.hook(answer) });

/** A bot whose updates are pushed to a receiver. */
const pushing =
  (answer?: Hook['answer'], more: object = {}) =>
  async (c: Case): Promise<Hooked> => {
    const at = await polling(answer)(c);
    await c.push(at.bot, at.hook, { ...more });
    return at;
  };

const set = (c: Case, { bot, hook }: Hooked, more: object = {}) =>
  c.call(bot, 'setWebhook', { url: hook.url, certificate: hook.certificate, ...more });
const info = (c: Case, bot: Bot) => c.result(bot, 'getWebhookInfo');
const say = (c: Case, { bot }: Hooked, text: string) => c.say(c.ann, bot.id, text);
const pushed = (count: number, { hook }: Hooked) =>
  eventually(() => expect(hook.arrivals.length).toBeGreaterThanOrEqual(count));
const textsOf = ({ hook }: Hooked) => hook.arrivals.map(({ update }) => update.message.text);
const nothingWaits = (c: Case, bot: Bot) =>
  eventually(async () => expect((await info(c, bot)).pending_update_count).toBe(0));
const failed = (c: Case, bot: Bot) =>
  eventually(async () => expect((await info(c, bot)).last_error_message).not.toBeNull());

const infoOf = ({ hook }: Hooked, more: object) => ({
  ...{ url: hook.url, has_custom_certificate: true, pending_update_count: 0 },
  ...{ last_error_date: null, last_error_message: null, max_connections: 40, ip_address: hookAddress },
  ...more,
});

const states: readonly Row[] = [
  row({
    title:
      '§2 Webhook info: url, has_custom_certificate, last_error_date, last_error_message of a webhook that is set',
    async arrange(c) {
      const at = await pushing(() => 503, { max_connections: 7, secret_token: 'not_shown' })(c);
      await say(c, at, 'waits');
      await failed(c, at.bot);
      return at;
    },
    act: (c, { bot }) => c.get(bot, 'getWebhookInfo'),
    answer: (at) =>
      ok(
        infoOf(at, {
          ...{ pending_update_count: 1, max_connections: 7, last_error_date: number },
          last_error_message: 'Wrong response from the webhook: 503 Service Unavailable',
        }),
      ),
    async after(_, __, { body }) {
      expect(Math.abs(body.result.last_error_date - Date.now() / 1_000)).toBeLessThan(30);
    },
  }),
  row({
    title:
      '§3 Update delivery mode: polling, setWebhook with a valid HTTPS URL → webhook, the server pushes updates',
    async arrange(c) {
      const at = await polling()(c);
      await say(c, at, 'before');
      await c.updates(at.bot, 1);
      return at;
    },
    act: (c, at) => set(c, at),
    answer: wasSet,
    async after(c, at) {
      await pushed(1, at);
      await say(c, at, 'after');
      await pushed(2, at);
      expect(textsOf(at)).toEqual(['before', 'after']);
      expect((await c.call(at.bot, 'getUpdates')).body).toEqual(conflict);
    },
  }),
  row({
    title: '§3 Update delivery mode: webhook, deleteWebhook → polling, getUpdates can be used again',
    async arrange(c) {
      const at = await pushing(() => 500)(c);
      const message_id = await say(c, at, 'waits');
      await failed(c, at.bot);
      return { ...at, message_id };
    },
    act: (c, { bot }) => c.call(bot, 'deleteWebhook'),
    answer: wasDeleted,
    async after(c, { bot, hook, message_id }) {
      const message = { ...personMessage(c.ann, privateChat(c.ann), message_id), text: 'waits' };
      expect(await c.updates(bot, 1)).toEqual([{ update_id: number, message }]);
      const before = hook.arrivals.length;
      await c.say(c.ann, bot.id, 'polled');
      expect((await c.updates(bot, 2)).map((update) => update.message.text)).toEqual(['waits', 'polled']);
      expect(await info(c, bot)).toMatchObject({ url: '', last_error_message: null, last_error_date: null });
      expect(hook.arrivals).toHaveLength(before);
    },
  }),
  row({
    title: '§4.3 GET deleteWebhook of a webhook that is set → true, what waits stays',
    async arrange(c) {
      const at = await pushing(() => 500)(c);
      await say(c, at, 'waits');
      return at;
    },
    act: (c, { bot }) => c.get(bot, 'deleteWebhook'),
    answer: wasDeleted,
    async after(c, { bot }) {
      expect(await info(c, bot)).toMatchObject({ url: '', has_custom_certificate: false });
      expect(await c.updates(bot, 1)).toHaveLength(1);
    },
  }),
  row({
    title: '§4.3 POST setWebhook, with form-encoded parameters → the webhook is set as they say',
    arrange: polling(),
    act: (c, { bot, hook: { url, certificate } }) =>
      c.http(
        ...(['POST', `/bot${bot.token}/setWebhook`, form] as const),
        new URLSearchParams({
          ...{ url, certificate, max_connections: '3', allowed_updates: '["message","callback_query"]' },
        }).toString(),
      ),
    answer: wasSet,
    after: async (c, at) =>
      expect(await info(c, at.bot)).toEqual(
        infoOf(at, { max_connections: 3, allowed_updates: ['message', 'callback_query'] }),
      ),
  }),
  row({
    title: '§4.3 POST setWebhook of the same webhook → true, nothing changes',
    arrange: pushing(),
    act: (c, at) => set(c, at),
    answer: () => told('Webhook is already set'),
    after: async (c, at) => expect(await info(c, at.bot)).toEqual(infoOf(at, {})),
  }),
];

const multipart = (url: string, certificate: string) =>
  [
    '--b\r\nContent-Disposition: form-data; name="url"\r\n',
    `${url}\r\n--b\r\nContent-Disposition: form-data; name="certificate"; filename="c.pem"\r\n`,
    `${certificate}\r\n--b--\r\n`,
  ].join('\r\n');

const parameters: readonly Row[] = [
  row({
    title: '§6 setWebhook: url, an empty one → the webhook is deleted',
    arrange: pushing(),
    act: (c, { bot }) => c.call(bot, 'setWebhook', { url: '' }),
    answer: wasDeleted,
    after: async (c, { bot }) => expect(await info(c, bot)).toMatchObject({ url: '', max_connections: 40 }),
  }),
  row({
    title: '§6 setWebhook: certificate, an uploaded file → updates are pushed to who shows it',
    arrange: polling(),
    act: (c, { bot, hook }) =>
      c.http(
        ...(['POST', `/bot${bot.token}/setWebhook`] as const),
        ...([
          { 'content-type': 'multipart/form-data; boundary=b' },
          multipart(hook.url, hook.certificate),
        ] as const),
      ),
    answer: wasSet,
    async after(c, at) {
      expect(await info(c, at.bot)).toEqual(infoOf(at, {}));
      await say(c, at, 'to a certificate of its own');
      await pushed(1, at);
    },
  }),
  row({
    title: '§6 setWebhook: no certificate → nothing is pushed to one whose certificate is not valid',
    arrange: polling(),
    act: (c, { bot, hook }) => c.call(bot, 'setWebhook', { url: hook.url }),
    answer: wasSet,
    async after(c, at) {
      await say(c, at, 'not for everyone');
      await failed(c, at.bot);
      expect(await info(c, at.bot)).toEqual(
        infoOf(at, {
          ...{ has_custom_certificate: false, pending_update_count: 1, last_error_date: number },
          last_error_message: 'SSL error: self-signed certificate',
        }),
      );
      expect(at.hook.arrivals).toEqual([]);
    },
  }),
  row({
    title: '§6 setWebhook: certificate, a text that is none → refused',
    arrange: pushing(),
    act: (c, at) => set(c, at, { certificate: 'certificate' }),
    answer: () => bad('bad webhook: certificate is not a valid PEM certificate'),
  }),
  row({
    title: '§6 setWebhook: max_connections 1 → one delivery at a time',
    arrange: polling(async () => {
      await sleep(100);
      return 200;
    }),
    act: (c, at) => set(c, at, { max_connections: 1 }),
    answer: wasSet,
    async after(c, at) {
      await c.appResult(c.ben, 'POST', `/api/bots/${at.bot.username}/start`, {});
      await Promise.all([c.ann, c.ben, c.ann, c.ben].map((who) => c.say(who, at.bot.id, 'at once')));
      await pushed(5, at);
      expect(at.hook.mostOpen).toBe(1);
    },
  }),
  row({
    title: '§6 setWebhook: allowed_updates → other types are not sent',
    arrange: polling(),
    act: (c, at) => set(c, at, { allowed_updates: ['edited_message'] }),
    answer: wasSet,
    async after(c, at) {
      const message_id = await say(c, at, 'not sent');
      const path = `/api/chats/${at.bot.id}/messages/${message_id}`;
      await c.appResult(c.ann, 'PATCH', path, { text: 'sent' });
      await pushed(1, at);
      await nothingWaits(c, at.bot);
      expect(at.hook.arrivals.map(({ update }) => update.edited_message?.text)).toEqual(['sent']);
    },
  }),
  ...[true, false].map((drop) =>
    row({
      title: `§6 setWebhook: drop_pending_updates ${drop} → old updates are ${drop ? 'cleared' : 'pushed'}`,
      async arrange(c) {
        const at = await polling()(c);
        await say(c, at, 'old');
        await c.updates(at.bot, 1);
        return at;
      },
      act: (c, at) => set(c, at, { drop_pending_updates: drop }),
      answer: wasSet,
      async after(c, at) {
        await say(c, at, 'new');
        await pushed(drop ? 1 : 2, at);
        await nothingWaits(c, at.bot);
        expect(textsOf(at)).toEqual(drop ? ['new'] : ['old', 'new']);
      },
    }),
  ),
  row({
    title: '§6 setWebhook: secret_token of other characters than letters, digits, _ and - → refused',
    arrange: pushing(),
    act: (c, at) => set(c, at, { secret_token: 'a b' }),
    answer: () => bad('secret token contains unallowed characters'),
  }),
];

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
    title: '§4.4 POST to the webhook URL: no secret_token → no secret header, a signature all the same',
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
    title: '§6 Delivery rules 1 and 2: a POST with an Update, answered with 200 → it waits no more',
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
      title: `§6 Delivery rules 3 and 4: ${reply} → the same update later, with the same update_id and body`,
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
    title: '§6 Delivery rules 5: getUpdates after deleteWebhook → what was not delivered',
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
      title: `${what} → refused, the webhook stays as it was`,
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
      '§8 Webhook request size: up to 10 MB, the largest message in reply to another → pushed as it is polled',
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

/** The first request is never answered, or after 58 seconds. */
const responseTime = row({
  title: '§8 Webhook response time: 60 seconds; an answer after 58 is taken, later the update is sent again',
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
    expect(waited_s).toBeLessThan(62);
    expect(slow.hook.arrivals).toHaveLength(1);
    expect(await info(c, slow.bot)).toEqual(infoOf(slow, {}));
  },
});

export const webhookRows: readonly Row[] = [
  ...states,
  ...parameters,
  ...deliveries,
  ...urls,
  ...bounds,
  responseTime,
];

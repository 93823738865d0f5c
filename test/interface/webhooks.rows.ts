/** Interface tests of how bots set and delete a webhook, and of the webhook info (interface §§2, 3, 4.3, 6). */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import {
  conflict,
  described,
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
  wasDeleted,
  wasSet,
} from './hooked.js';
import { bad, ok, type Row, row } from './row.js';
import { number, personMessage, privateChat } from './shapes.js';

const form = { 'content-type': 'application/x-www-form-urlencoded' };

const states: readonly Row[] = [
  row({
    title:
      '§2 Webhook info: url, has_custom_certificate, last_error_date, last_error_message of a set webhook',
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
    title: '§4.3 GET deleteWebhook of a set webhook → true, and pending updates stay',
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
    title: '§4.3 POST setWebhook, with form-encoded parameters → the webhook is set with these parameters',
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
    title: '§4.3 POST setWebhook of the same webhook → true, and nothing changes',
    arrange: pushing(),
    act: (c, at) => set(c, at),
    answer: () => described('Webhook is already set'),
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
    title: '§6 setWebhook: an empty url → the webhook is deleted',
    arrange: pushing(),
    act: (c, { bot }) => c.call(bot, 'setWebhook', { url: '' }),
    answer: wasDeleted,
    after: async (c, { bot }) => expect(await info(c, bot)).toMatchObject({ url: '', max_connections: 40 }),
  }),
  row({
    title: '§6 setWebhook: an uploaded certificate → updates are pushed to the server with this certificate',
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
    title: '§6 setWebhook: no certificate → nothing is pushed to a server with an invalid certificate',
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
    title: '§6 setWebhook: a certificate that is not PEM → refused',
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
    title: '§6 setWebhook: a secret_token with characters other than letters, digits, _ and - → refused',
    arrange: pushing(),
    act: (c, at) => set(c, at, { secret_token: 'a b' }),
    answer: () => bad('secret token contains unallowed characters'),
  }),
];

export const webhookRows: readonly Row[] = [...states, ...parameters];

/** Interface tests of tokens, of the two ways to get updates (interface §3, §4.2), and of invalid tokens (§7). */
import { expect } from 'vitest';
import type { Bot, Case } from './case.js';
import { abilities } from './fields.rows.js';
import { ok, type Row, refusal, row, unauthorized } from './row.js';
import { botUser, number, personMessage, privateChat } from './shapes.js';

const path = (bot: Bot) => `/api/me/bots/${bot.id}/regenerate_token`;
const me = (bot: Bot) => ok({ ...botUser(bot), ...abilities });

/** Creates a bot whose token every node has cached. */
async function knownBot(c: Case): Promise<Bot> {
  const bot = await c.bot();
  for (const _ of [1, 2]) expect((await c.get(bot, 'getMe')).status).toBe(200);
  return bot;
}

const stillValid = async (c: Case, bot: Bot) => expect((await c.get(bot, 'getMe')).body).toEqual(me(bot));

const regeneration: readonly Row[] = [
  row({
    title:
      '§3 Bot token: valid, regenerate token → the new token is valid, and the old one stops working immediately',
    arrange: knownBot,
    act: (c, bot) => c.app(c.owner, 'POST', path(bot)),
    answer: ({ id, username }) =>
      ok({ id, username, token: expect.stringMatching(new RegExp(`^${id}:A[A-Za-z0-9_-]{34}$`)) }),
    async after(c, bot, { body: { result } }) {
      expect(result.token).not.toBe(bot.token);
      for (const _ of [1, 2]) {
        const old = await c.get(bot, 'getMe');
        expect([old.status, old.body]).toEqual([401, unauthorized]);
        expect((await c.get(result, 'getMe')).body).toEqual(me(bot));
      }
    },
  }),
  row({
    title: '§3 Bot token: valid, regenerate token by another person → refused, and the token stays valid',
    arrange: knownBot,
    act: (c, bot) => c.app(c.ben, 'POST', path(bot)),
    answer: () => refusal(403, 'Forbidden: not the owner of the bot'),
    after: stillValid,
  }),
  row({
    title: '§4.2 POST /api/me/bots/{bot_id}/regenerate_token, without a body → the bot with its new token',
    arrange: (c) => c.bot(),
    act: (c, bot) => c.http('POST', path(bot), { authorization: `Bearer ${c.owner.token}` }),
    answer: ({ id, username }) => ok({ id, username, token: expect.any(String) }),
    async after(c, bot, { body: { result } }) {
      const shown = await c.appResult(c.owner, 'GET', `/api/me/bots/${bot.id}/token`);
      expect(shown).toEqual({ token: result.token });
    },
  }),
  row({
    title: '§4.2 regenerate_token without a user token → 401, and the token stays valid',
    arrange: knownBot,
    act: (c, bot) => c.http('POST', path(bot), {}),
    answer: () => unauthorized,
    after: stillValid,
  }),
  row({
    title: '§4.2 regenerate_token with the token of the bot → 401, and the token stays valid',
    arrange: knownBot,
    act: (c, bot) => c.app(bot, 'POST', path(bot)),
    answer: () => unauthorized,
    after: stillValid,
  }),
  row({
    title: '§4.2 regenerate_token of an unknown bot → 404',
    arrange: (c) => c.bot(),
    act: (c) => c.app(c.owner, 'POST', '/api/me/bots/9999999999/regenerate_token'),
    answer: () => refusal(404, 'Not Found: bot not found'),
  }),
];

const delivery: readonly Row[] = [
  row({
    title:
      '§3 Update delivery mode: polling, deleteWebhook → polling, pending updates stay, and getUpdates can be used',
    async arrange(c) {
      const at = await c.direct();
      return { ...at, message_id: await c.say(c.ann, at.bot.id, 'waits') };
    },
    act: (c, { bot }) => c.get(bot, 'deleteWebhook'),
    answer: () => ({ ...ok(true), description: 'Webhook is already deleted' }),
    async after(c, { bot, message_id }) {
      const message = { ...personMessage(c.ann, privateChat(c.ann), message_id), text: 'waits' };
      expect(await c.updates(bot, 1)).toEqual([{ update_id: number, message }]);
      expect(await c.result(bot, 'getWebhookInfo')).toMatchObject({ url: '', pending_update_count: 1 });
    },
  }),
];

const invalid: ReadonlyArray<readonly [string, (token: string, id: number) => string]> = [
  ['missing', () => ''],
  ['malformed', () => 'not-a-token'],
  ['cut short', (token) => token.slice(0, -1)],
  ['with another checksum', (token) => token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')],
  ['of another bot', (token, id) => token.replace(/^\d+/, String(id + 1))],
  ['never issued', (_, id) => `${id}:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA`],
];

const invalidRows = invalid.flatMap(([what, made]) =>
  (['GET', 'POST'] as const).map((verb) =>
    row({
      title: `§7 Invalid bot token: ${what}, ${verb} → 401 with ok, error_code and description`,
      arrange: (c) => c.bot(),
      act: (c, bot) => c.http(verb, `/bot${made(bot.token, bot.id)}/getMe`, {}),
      answer: () => unauthorized,
    }),
  ),
);

const replaced = row({
  title: '§7 Invalid bot token: replaced, sendMessage → 401, and nothing is sent',
  async arrange(c) {
    const at = await c.direct();
    await c.appResult(c.owner, 'POST', path(at.bot));
    return at;
  },
  act: (c, { bot, chat }) => c.call(bot, 'sendMessage', { chat_id: chat, text: 'late' }),
  answer: () => unauthorized,
  async after(c, { bot }) {
    expect((await c.history(c.ann, bot.id)).map(({ text }) => text)).toEqual(['/start']);
  },
});

export const tokenRows: readonly Row[] = [...regeneration, ...delivery, ...invalidRows, replaced];

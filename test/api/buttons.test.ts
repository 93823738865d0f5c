import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let user: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'menu');
  await service.openChat(user, bot);
});

const send = (button: object) =>
  service.bot(bot, 'sendMessage', {
    chat_id: user.id,
    text: 'menu',
    reply_markup: { inline_keyboard: [[{ text: 'b', ...button }]] },
  });

test.each([
  { web_app: { url: 'https://example.org/app?x=1' } },
  { login_url: { url: 'https://example.org/login' } },
  { copy_text: { text: 'x'.repeat(256) } },
  { switch_inline_query: '' },
  { switch_inline_query_current_chat: 'cats' },
  { switch_inline_query_chosen_chat: { query: 'cats' } },
  { callback_data: 'd', style: 'danger' },
])('a sent message contains the button %j', async (button) => {
  const { reply_markup } = await resultOf(send(button));
  expect(reply_markup).toEqual({ inline_keyboard: [[{ text: 'b', ...button }]] });
});

test.each([
  ['t.me/name', 'http://t.me/name'],
  ['example.org', 'http://example.org'],
  ['tg://user?id=1', 'tg://user?id=1'],
])('a button with the address %s is stored with the address %s', async (url, kept) => {
  const { reply_markup } = await resultOf(send({ url }));
  expect(reply_markup.inline_keyboard).toEqual([[{ text: 'b', url: kept }]]);
});

test.each([
  [{ url: 'name' }, 'BUTTON_TYPE_INVALID'],
  [{ url: 'javascript:alert(1)' }, 'BUTTON_TYPE_INVALID'],
  [{ pay: true }, 'BUTTON_TYPE_INVALID'],
  [{ callback_game: {} }, 'BUTTON_TYPE_INVALID'],
  [{ web_app: { url: 'http://example.org' } }, 'BUTTON_URL_INVALID'],
  [{ web_app: { url: 'https://[' } }, 'BUTTON_URL_INVALID'],
  [{ login_url: { url: 'tg://user?id=1' } }, 'BUTTON_URL_INVALID'],
  [{ copy_text: { text: '' } }, 'BUTTON_COPY_TEXT_INVALID'],
  [{ copy_text: { text: 'x'.repeat(257) } }, 'BUTTON_COPY_TEXT_INVALID'],
  [{ switch_inline_query: 'é'.repeat(129) }, 'BUTTON_QUERY_INVALID'],
  [{ web_app: 'https://example.org' }, "can't parse reply keyboard markup JSON object"],
  [{ callback_data: 'd', style: 'pink' }, "can't parse reply keyboard markup JSON object"],
])('a message with the button %j is refused', async (button, why) => {
  const { body } = await send(button);
  expect(body).toEqual({ ok: false, error_code: 400, description: `Bad Request: ${why}` });
});

describe('links of buttons', () => {
  const open = async (button: object, url: string, as = user) => {
    const { message_id } = await resultOf(send(button));
    return service.app(as, 'POST', `/api/chats/${bot.id}/messages/${message_id}/link`, { url });
  };
  const signed = (key: Buffer, { hash, ...fields }: Record<string, string>) => {
    const text = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
    expect(createHmac('sha256', key).update(text.sort().join('\n')).digest('hex')).toBe(hash);
    expect(Math.abs(Number(fields.auth_date) - Date.now() / 1000)).toBeLessThan(30);
    return fields;
  };

  test('a Web App button opens a link with init data about the person, signed with the bot token', async () => {
    const url = 'https://example.org/app?x=1';
    const link = new URL((await resultOf(open({ web_app: { url } }, url))).url);
    expect(`${link.origin}${link.pathname}${link.search}`).toBe(url);
    const data = new URLSearchParams(new URLSearchParams(link.hash.slice(1)).get('tgWebAppData') ?? '');
    const key = createHmac('sha256', 'WebAppData').update(bot.token).digest();
    const fields = signed(key, Object.fromEntries(data));
    expect(JSON.parse(fields.user as string)).toMatchObject({ id: user.id, first_name: expect.any(String) });
  });

  test('a login button opens a link with data about the person, signed with the bot token', async () => {
    const url = 'https://example.org/login?next=a';
    const link = new URL((await resultOf(open({ login_url: { url } }, url))).url);
    const { next, ...fields } = Object.fromEntries(link.searchParams);
    expect(next).toBe('a');
    expect(signed(createHash('sha256').update(bot.token).digest(), fields)).toMatchObject({
      id: `${user.id}`,
    });
  });

  test("a person gets a link only for the URL of one of the message's buttons", async () => {
    const url = 'https://example.org/app';
    for (const [button, given] of [
      [{ web_app: { url } }, 'https://example.org/other'],
      [{ url }, url],
    ] as const)
      expect((await open(button, given)).body).toMatchObject({
        error_code: 400,
        description: 'Bad Request: button not found',
      });
  });

  test('a person who is not in the chat gets no link for a button', async () => {
    const url = 'https://example.org/app';
    const stranger = await service.newUser('eve');
    const { body } = await open({ web_app: { url } }, url, stranger);
    expect(body).toMatchObject({ error_code: 404, description: 'Not Found: chat not found' });
  });
});

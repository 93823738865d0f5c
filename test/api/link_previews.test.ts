/**
 * Tests link previews through a front that loads pages from a real server. Also tests the link preview options of bots.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { certificate } from '../delivery/fixture.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let pages: Receiver;
let alice: TestUser;
let bot: TestBot;
const asked: string[] = [];

beforeAll(async () => {
  pages = await startReceiver(certificate, ({ url = '' }, response) => {
    asked.push(url);
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`<title>Page ${url}</title><meta name="description" content="About it">`);
  });
  const trusted = join(temporaryFolder(), 'trusted.pem');
  writeFileSync(trusted, certificate.cert);
  service = await startService({
    combined: true,
    extraEnv: { LINK_PREVIEWS: '1', WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32', NODE_EXTRA_CA_CERTS: trusted },
  });
  alice = await service.newUser('alice');
  bot = await service.newBot(alice, 'linker');
  await service.openChat(alice, bot);
});
afterAll(async () => {
  await service?.stop();
  await pages?.close();
});

const urlOf = (path: string) => `https://127.0.0.1:${pages.port}/${path}`;
const preview = (user: TestUser, chat: number, message: number) =>
  service.app(user, 'GET', `/api/chats/${chat}/messages/${message}/link_preview`);
const send = (text: string, more = {}) =>
  resultOf(service.bot(bot, 'sendMessage', { chat_id: alice.id, text, ...more }));
const shown = async (text: string, more = {}) =>
  resultOf(preview(alice, bot.id, (await send(text, more)).message_id));

test('a message of a bot or a person shows a preview of the first page that the message links to', async () => {
  const found = { host: `127.0.0.1:${pages.port}`, description: 'About it' };
  const link = `<a href="${urlOf('a')}">this</a> and ${urlOf('b')}`;
  expect(await shown(link, { parse_mode: 'HTML' })).toEqual({
    preview: { ...found, url: urlOf('a'), title: 'Page /a' },
  });
  const { message_id } = await resultOf(
    service.app(alice, 'POST', `/api/chats/${bot.id}/messages`, { text: `see ${urlOf('c#part')}` }),
  );
  expect(await resultOf(preview(alice, bot.id, message_id))).toEqual({
    preview: { ...found, url: urlOf('c'), title: 'Page /c' },
  });
  expect(asked).toEqual(['/a', '/c']);
});

test('an edited message shows a preview of the page of its new link', async () => {
  const { message_id } = await send(urlOf('before'));
  await resultOf(
    service.bot(bot, 'editMessageText', { chat_id: alice.id, message_id, text: urlOf('after') }),
  );
  expect(await resultOf(preview(alice, bot.id, message_id))).toMatchObject({
    preview: { title: 'Page /after' },
  });
});

test('a message has no link preview if its text has no link or the link leads to an internal address', async () => {
  for (const text of ['no link', 'https://127.0.0.2/', 'https://localhost:1/', 'http://127.0.0.1:80/'])
    expect(await shown(text)).toEqual({});
  const { message_id } = await resultOf(
    service.bot(bot, 'sendPhoto', {
      ...{ chat_id: alice.id, photo: 'https://media.example/1.jpg', caption: urlOf('caption') },
    }),
  );
  expect(await resultOf(preview(alice, bot.id, message_id))).toEqual({});
  expect(asked).not.toContain('/caption');
});

describe('options of link previews', () => {
  test('a message shows only the link preview options that are on', async () => {
    const options = { is_disabled: false, prefer_small_media: true, show_above_text: true };
    const { message_id, ...sent } = await send(urlOf('options'), { link_preview_options: options });
    const on = { prefer_small_media: true, show_above_text: true };
    expect(sent.link_preview_options).toEqual(on);
    const [read] = (await resultOf(service.app(alice, 'GET', `/api/chats/${bot.id}/messages?limit=1`))).items;
    expect(read.link_preview_options).toEqual(on);
    const edited = await resultOf(
      service.bot(bot, 'editMessageText', {
        ...{ chat_id: alice.id, message_id, text: urlOf('options'), disable_web_page_preview: true },
      }),
    );
    expect(edited.link_preview_options).toEqual({ is_disabled: true });
    for (const none of [{}, { is_disabled: false }, null])
      expect((await send('x', { link_preview_options: none })).link_preview_options).toBeUndefined();
  });

  test('link preview options can turn the preview off, and can name another page', async () => {
    expect(await shown(urlOf('off'), { link_preview_options: { is_disabled: true } })).toEqual({});
    expect(await shown(urlOf('off'), { disable_web_page_preview: 'true' })).toEqual({});
    const both = { disable_web_page_preview: true, link_preview_options: { show_above_text: true } };
    expect(await shown(urlOf('both'), both)).toMatchObject({ preview: { title: 'Page /both' } });
    const other = { link_preview_options: JSON.stringify({ url: urlOf('other') }) };
    expect(await shown('no link', other)).toMatchObject({ preview: { title: 'Page /other' } });
    expect(asked).not.toContain('/off');
  });

  test('a forward and a copy keep the link preview options', async () => {
    const { message_id } = await send(urlOf('x'), { link_preview_options: { is_disabled: true } });
    const from = { chat_id: alice.id, from_chat_id: alice.id, message_id };
    const forward = await resultOf(service.bot(bot, 'forwardMessage', from));
    expect(forward.link_preview_options).toEqual({ is_disabled: true });
    const copy = await resultOf(service.bot(bot, 'copyMessage', from));
    expect(await resultOf(preview(alice, bot.id, copy.message_id))).toEqual({});
  });

  test('invalid link preview options are refused', async () => {
    const refused = (link_preview_options: unknown) =>
      service.bot(bot, 'sendMessage', { chat_id: alice.id, text: 'x', link_preview_options });
    for (const [options, description] of [
      ['text', 'parameter "link_preview_options" must be an object of link preview options'],
      [{ is_disabled: 'maybe' }, 'parameter "link_preview_options.is_disabled" must be a boolean'],
      [
        { url: 'a'.repeat(2_049) },
        'parameter "link_preview_options.url" must be a URL of up to 2048 characters',
      ],
    ])
      expect((await refused(options)).body).toMatchObject({
        description: `Bad Request: ${description}`,
      });
  });
});

test('people who cannot read the message get no preview', async () => {
  const { message_id } = await send(urlOf('private'));
  const stranger = await service.newUser('stranger');
  expect((await preview(stranger, bot.id, message_id)).status).toBe(404);
  const group = await service.newGroup(alice, 'Closed', [bot]);
  const sent = await resultOf(service.bot(bot, 'sendMessage', { chat_id: group, text: urlOf('private') }));
  expect((await preview(stranger, group, sent.message_id)).status).toBe(403);
  expect((await preview(alice, bot.id, message_id + 1_000)).status).toBe(404);
  expect(asked).not.toContain('/private');
  expect(await resultOf(preview(alice, group, sent.message_id))).toMatchObject({
    preview: { title: 'Page /private' },
  });
});

describe('with LINK_PREVIEWS=0', () => {
  let plain: Service;
  onSharedService((running) => {
    plain = running;
  });

  test('while link previews are off, a request for a preview is refused, and the error says that previews are off', async () => {
    const user = await plain.newUser('reader');
    const group = await plain.newGroup(user, 'Readers', []);
    const sent = await resultOf(plain.app(user, 'POST', `/api/chats/${group}/messages`, { text: 'x' }));
    const path = `/api/chats/${group}/messages/${sent.message_id}/link_preview`;
    const answer = await plain.app(user, 'GET', path);
    expect(answer.body).toMatchObject({ error_code: 400, description: 'Bad Request: link previews are off' });
  });
});

/** Checks real answers of every method and endpoint against their schemas in the OpenAPI document. */

import { createECDH } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import { rightNames } from '../../src/rules/rights.js';
import { updateKinds } from '../../src/rules/update_kinds.js';
import { makeBrowser } from '../push/browser.js';
import { differencesFromBotApi, recordAnswers } from '../support/bot_api.js';
import { providerSettings } from '../support/provider.js';
import { answered, holdEndpoint, holdMethod } from '../support/results.js';
import { mp4, png } from '../support/samples.js';
import { temporaryFolder } from '../support/servers.js';
import { itemsOf, resultOf, type Service, startService } from '../support/service.js';
import { callOpenly } from '../support/sign_in_calls.js';
import { makePartner, signatureOf } from './leaks_world.js';

let service: Service;

const partner = makePartner('results');
const vapid = createECDH('prime256v1');
vapid.generateKeys();

beforeAll(async () => {
  const keys = join(temporaryFolder(), 'keys.json');
  const listed = { key_identifier: partner.id, key: partner.pem, is_current: true };
  writeFileSync(keys, JSON.stringify({ public_keys: [listed] }));
  service = await startService({
    combined: true,
    extraEnv: {
      ...providerSettings,
      WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
      TRANSFER_CONSENT: '1',
      ...{ SIGN_UP: 'open', SUGGESTED_CHATS: 'suggested_bot' },
      VAPID_PRIVATE_KEY: Buffer.from(vapid.getPrivateKey('hex').padStart(64, '0'), 'hex').toString(
        'base64url',
      ),
      VAPID_SUBJECT: 'mailto:operator@example.org',
    },
    frontEnv: { LEAK_REPORT_KEYS: keys },
  });
});
afterAll(() => service?.stop());

const recorder = recordAnswers();

const page = 'https://example.org/app';
const keyboard = {
  inline_keyboard: [
    [
      { text: 'b', callback_data: 'd' },
      { text: 'p', web_app: { url: page } },
    ],
  ],
};

// `service.bot`, `service.app` and `callOpenly` fail if an answer does not match the schema of its call.
test('answers about sign-up, sessions and suggestions match their schemas', async () => {
  const owner = await service.newUser('suggests');
  const bot = { username: 'suggested_bot', name: 'Suggested' };
  await resultOf(service.app(owner, 'POST', '/api/me/bots', bot));
  expect(await itemsOf(service.app(owner, 'GET', '/api/suggestions'))).toHaveLength(1);
  await resultOf(callOpenly(service, 'GET', '/api/sign_in'));
  const given = { first_name: 'Ann', username: 'signed_up' };
  const ann = await resultOf(callOpenly(service, 'POST', '/api/sign_up', given));
  const [session] = await itemsOf(service.app(ann, 'GET', '/api/me/sessions'));
  await resultOf(service.app(ann, 'DELETE', '/api/me/sessions'));
  await resultOf(service.app(owner, 'DELETE', '/api/me/session'));
  await resultOf(service.app(ann, 'DELETE', `/api/me/sessions/${session.id}`));
});

test('answers of inline methods match their schemas', async () => {
  const ann = await service.newUser('ann');
  const bot = await service.newBot(ann, 'inline');
  await service.openChat(ann, bot);
  const at = `/api/chats/${bot.id}`;
  const mode = { enabled: true, placeholder: 'Search', feedback: true };
  await resultOf(service.app(ann, 'PUT', `/api/me/bots/${bot.id}/inline_mode`, mode));
  const draft = { draft_id: 1, text: '<b>x</b>', parse_mode: 'HTML', can_stop: true };
  await resultOf(service.bot(bot, 'sendMessageDraft', { chat_id: ann.id, ...draft }));
  await resultOf(service.app(ann, 'GET', `${at}/draft`));
  await resultOf(service.app(ann, 'POST', `${at}/draft/stop`, { draft_id: 1 }));
  await resultOf(service.app(ann, 'GET', `/api/names/${bot.username}`));
  await resultOf(service.bot(bot, 'getMe'));
  const next = async (field: string) => {
    for (;;) {
      const [update] = await resultOf(service.bot(bot, 'getUpdates', { limit: 1, timeout: 30 }));
      await resultOf(service.bot(bot, 'getUpdates', { offset: update.update_id + 1, limit: 1 }));
      if (update[field]) return update[field];
    }
  };
  const asking = service.app(ann, 'POST', `${at}/inline_query`, { bot_id: bot.id, query: 'q' });
  const results = [
    {
      ...{ type: 'article', id: '1', title: 't', description: 'd', url: page, reply_markup: keyboard },
      ...{ input_message_content: { message_text: 'x' }, thumbnail_url: page, thumbnail_width: 8 },
    },
    { type: 'video', id: '2', video_url: page, mime_type: 'video/mp4', thumbnail_url: page, title: 't' },
  ];
  const { id: inline_query_id } = await next('inline_query');
  const button = { text: 'b', start_parameter: 'p' };
  await resultOf(
    service.bot(bot, 'answerInlineQuery', { inline_query_id, results, button, next_offset: '1' }),
  );
  const shown = await resultOf(asking);
  const chosen = { inline_query_id: shown.inline_query_id, result_id: '1' };
  const { message_id } = await resultOf(service.app(ann, 'POST', `${at}/inline_result`, chosen));
  await resultOf(service.app(ann, 'GET', `${at}/messages`));
  await resultOf(service.app(ann, 'POST', `${at}/messages/${message_id}/callback`, { data: 'd' }));
  await resultOf(service.app(ann, 'POST', `${at}/messages/${message_id}/link`, { url: page }));
  const { inline_message_id } = await next('callback_query');
  await resultOf(service.bot(bot, 'editMessageText', { inline_message_id, text: 'y' }));
});

test('answers about messages, updates and chats of a bot match their schemas', async () => {
  const ann = await service.newUser('ann');
  const bot = await service.newBot(ann, 'all');
  await service.openChat(ann, bot);
  const group = await service.newGroup(ann, 'Team', [bot]);
  const call = (method: string, params = {}) => resultOf(service.bot(bot, method, params));
  await call('getMe');
  for (const chat_id of [ann.id, group]) {
    const first = await call('sendMessage', { chat_id, text: '*b* x', parse_mode: 'MarkdownV2' });
    const more = { parse_mode: 'HTML', reply_markup: keyboard, protect_content: true };
    const text = `<b>bold</b> <a href="tg://user?id=${ann.id}">ann</a> <a href="https://a.example/">a</a>`;
    const reply = { reply_parameters: { message_id: first.message_id } };
    const sent = await call('sendMessage', { chat_id, text, ...more, ...reply });
    const at = chat_id === ann.id ? bot.id : group;
    const pressed = await resultOf(
      service.app(ann, 'POST', `/api/chats/${at}/messages/${sent.message_id}/callback`, { data: 'd' }),
    );
    await resultOf(
      service.app(ann, 'POST', `/api/chats/${at}/messages/${sent.message_id}/link`, { url: page }),
    );
    const own = { chat_id, message_id: sent.message_id };
    await call('answerCallbackQuery', pressed);
    const reply_markup = {
      keyboard: [['Yes', { text: 'Call me', request_contact: true }]],
      selective: false,
    };
    await call('sendMessage', { chat_id, text: 'keys', reply_markup });
    const shown = await resultOf(service.app(ann, 'GET', `/api/chats/${at}/reply_keyboard`));
    expect(shown).toHaveProperty('message.reply_keyboard');
    await call('editMessageReplyMarkup', own);
    await call('editMessageText', { chat_id, message_id: first.message_id, text: 'new /start @ann #tag' });
    const said = await resultOf(
      service.app(ann, 'POST', `/api/chats/${at}/messages`, { text: '/go @x a@b.example' }),
    );
    await resultOf(service.app(ann, 'PATCH', `/api/chats/${at}/messages/${said.message_id}`, { text: 'y' }));
    await call('sendChatAction', { chat_id, action: 'typing' });
    await call('getChat', { chat_id });
    await call('getChatMember', { chat_id, user_id: ann.id });
    for (const method of ['getChatMemberCount', 'getChatMembersCount']) await call(method, { chat_id });
    await call('deleteMessage', own);
    for (const path of [`/api/chats/${at}`, `/api/chats/${at}/messages`])
      await resultOf(service.app(ann, 'GET', path));
    await resultOf(service.app(ann, 'DELETE', `/api/chats/${at}/messages/${said.message_id}`));
  }
  await call('getChatAdministrators', { chat_id: group });
  const path = `/api/bots/${bot.username}/block`;
  for (const verb of ['POST', 'DELETE']) await resultOf(service.app(ann, verb, path));
  const eve = await service.newUser('eve');
  const channel = { type: 'channel', title: 'News', username: 'results_news' };
  const { id } = await resultOf(service.app(ann, 'POST', '/api/chats', channel));
  await resultOf(service.app(ann, 'PUT', `/api/chats/${id}/members/${bot.id}`, {}));
  await resultOf(service.app(eve, 'GET', `/api/chats/${id}/about`));
  await resultOf(service.app(eve, 'POST', `/api/chats/${id}/join`));
  await resultOf(service.app(eve, 'POST', `/api/chats/${id}/leave`));
  await resultOf(service.app(ann, 'POST', `/api/chats/${id}/messages`, { text: 'post' }));
  await call('leaveChat', { chat_id: '@results_news' });
  const updates = await call('getUpdates');
  const kinds = new Set(updates.flatMap((update: object) => Object.keys(update)));
  expect([...kinds].sort()).toEqual([
    ...['callback_query', 'channel_post', 'edited_message', 'message', 'my_chat_member'],
    'update_id',
  ]);
  for (const [text, max] of [
    ['Name', 64],
    ['Description', 512],
    ['ShortDescription', 120],
  ] as const) {
    const name = text.replace(/\B[A-Z]/, '_$&').toLowerCase();
    await call(`setMy${text}`, { [name]: 'x'.repeat(max), language_code: 'en' });
    await call(`getMy${text}`);
  }
  await call('close');
  await call('logOut');
  await call('deleteWebhook');
  await call('getWebhookInfo');
  await call('setMyCommands', { commands: [{ command: 'go', description: 'Goes' }] });
  expect(await call('getMyCommands')).toHaveLength(1);
  await call('deleteMyCommands');
  const web_app = { url: 'https://shop.example/' };
  await call('setChatMenuButton', { menu_button: { type: 'web_app', text: 'Shop', web_app } });
  expect(await call('getChatMenuButton')).toMatchObject({ type: 'web_app' });
  await resultOf(service.app(ann, 'POST', `/api/bots/${bot.username}/menu`, { url: web_app.url }));
  await call('setMyDefaultAdministratorRights', { rights: { can_pin_messages: true } });
  for (const for_channels of [false, true]) await call('getMyDefaultAdministratorRights', { for_channels });
  await resultOf(service.app(ann, 'GET', `/api/bots/${bot.username}`));
  const url = `${service.fronts[0]?.url}/api/me/bots/${bot.id}/avatar`;
  const headers = { authorization: `Bearer ${ann.token}`, 'content-type': 'image/png' };
  expect((await fetch(url, { method: 'PUT', headers, body: new Uint8Array(png(64, 64)) })).status).toBe(200);
  expect(await call('getUserProfilePhotos', { user_id: bot.id })).toMatchObject({ total_count: 1 });
});

test('answers to moderation calls and to changes of a chat match their schemas', async () => {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const bot = await service.newBot(ann, 'warden');
  const chat_id = await service.newGroup(ann, 'Yard', [ben]);
  const rights = Object.fromEntries(rightNames.map((name) => [name, true]));
  const app = (verb: string, path: string, body?: Readonly<Record<string, unknown>>) =>
    resultOf(service.app(ann, verb, `/api/chats/${chat_id}${path}`, body));
  await app('PUT', `/members/${bot.id}`, { status: 'administrator', rights });
  const call = (method: string, params = {}) =>
    resultOf(service.bot(bot, method, { chat_id, user_id: ben.id, ...params }));
  await call('setChatTitle', { title: 'Garden' });
  await call('setChatDescription', { description: 'Green' });
  await app('PATCH', '', { title: 'Orchard', description: 'Trees' });
  const image = new Uint8Array(png(64, 64));
  const authorization = `Bearer ${ann.token}`;
  const upload = async () => {
    const url = `${service.fronts[0]?.url}/api/chats/${chat_id}/photo`;
    const answer = await fetch(url, { method: 'PUT', headers: { authorization }, body: image });
    const body = (await answer.json()) as object;
    holdEndpoint('PUT', `/api/chats/${chat_id}/photo`, { status: answer.status, headers: {}, body });
    expect(body).toMatchObject({ ok: true });
  };
  await upload();
  await call('getChat');
  await app('GET', '');
  await app('DELETE', '/photo');
  await upload();
  await call('deleteChatPhoto');
  const form = new FormData();
  form.set('chat_id', String(chat_id));
  form.set('photo', new Blob([image]), 'a.png');
  const url = `${service.fronts[0]?.url}/bot${bot.token}/setChatPhoto`;
  const set = await fetch(url, { method: 'POST', body: form });
  const body = (await set.json()) as object;
  holdMethod('setChatPhoto', { status: set.status, headers: {}, body });
  expect(body).toEqual({ ok: true, result: true });
  await call('setChatPermissions', { permissions: { can_send_messages: true } });
  await call('promoteChatMember', { can_pin_messages: true });
  await call('setChatAdministratorCustomTitle', { custom_title: 'Gardener' });
  await call('getChatMember');
  await call('promoteChatMember');
  await call('restrictChatMember', { permissions: {}, until_date: Math.floor(Date.now() / 1_000) + 3_600 });
  await call('getChatMember');
  await app('GET', '/members');
  for (const method of ['banChatMember', 'getChatMember', 'unbanChatMember', 'kickChatMember'])
    await call(method);
  await app('GET', '/messages');
  await call('getUpdates', { allowed_updates: ['message', 'chat_member', 'my_chat_member'] });
});

test('answers with media, pins, forwards and copies match their schemas', async () => {
  const ann = await service.newUser('ann');
  const bot = await service.newBot(ann, 'media');
  await service.openChat(ann, bot);
  const chat_id = ann.id;
  const call = (method: string, params = {}) => resultOf(service.bot(bot, method, { chat_id, ...params }));
  const files = 'https://files.example/';
  const caption = { caption: '<b>c</b>', parse_mode: 'HTML' };
  for (const kind of ['video', 'audio', 'document', 'animation', 'voice'])
    await call(`send${kind[0]?.toUpperCase()}${kind.slice(1)}`, { [kind]: `${files}${kind}`, ...caption });
  const at = { latitude: 1, longitude: 2 };
  await call('sendLocation', { ...at, horizontal_accuracy: 5 });
  const live = await call('sendLocation', { ...at, live_period: 60, heading: 1, proximity_alert_radius: 1 });
  await call('editMessageLiveLocation', { message_id: live.message_id, ...at, latitude: 3 });
  const parked = await call('sendLocation', { ...at, live_period: 60 });
  await call('stopMessageLiveLocation', { message_id: parked.message_id });
  await call('sendVenue', { ...at, title: 't', address: 'a', foursquare_id: 'f' });
  await call('sendDice', { emoji: '🎰' });
  const poll = await call('sendPoll', { question: 'q', options: ['a'], is_anonymous: false });
  const pollPath = `/api/chats/${bot.id}/messages/${poll.message_id}/poll`;
  await resultOf(service.app(ann, 'GET', pollPath));
  await resultOf(service.app(ann, 'POST', pollPath, { option_ids: [0] }));
  await call('stopPoll', { message_id: poll.message_id });
  const own = `/api/chats/${bot.id}`;
  const album = ['photo', 'video'].map((type) => ({ type, media: files + type, caption: type }));
  await resultOf(service.app(ann, 'POST', `${own}/albums`, { media: album }));
  for (const sent of [{ voice: `${files}voice`, text: 'c' }, { location: at }])
    await resultOf(service.app(ann, 'POST', `${own}/messages`, sent));
  await call('sendContact', { phone_number: '1', first_name: 'f', last_name: 'l', vcard: 'v' });
  const form = new FormData();
  form.set('chat_id', String(chat_id));
  form.set('video_note', new Blob([mp4(64, 64, 1)]), 'n.mp4');
  const url = `${service.fronts[0]?.url}/bot${bot.token}/sendVideoNote`;
  const sent = await fetch(url, { method: 'POST', body: form });
  const body = (await sent.json()) as { result: { video_note: { file_id: string } } };
  holdMethod('sendVideoNote', { status: sent.status, headers: {}, body });
  await call('sendVideoNote', { video_note: body.result.video_note.file_id });
  const hold = async (method: string, form: FormData) => {
    const url = `${service.fronts[0]?.url}/bot${bot.token}/${method}`;
    const answer = await fetch(url, { method: 'POST', body: form });
    const body = (await answer.json()) as { result: { file_id: string } };
    holdMethod(method, { status: answer.status, headers: {}, body });
    return body.result;
  };
  const pictures = new FormData();
  for (const [name, value] of Object.entries({
    ...{ user_id: String(ann.id), name: `all_by_${bot.username}`, title: 't' },
    stickers: JSON.stringify([
      { sticker: 'attach://s', format: 'static', emoji_list: ['👍'], keywords: ['k'] },
      { sticker: 'attach://t', format: 'static', emoji_list: ['👍'] },
    ]),
  }))
    pictures.set(name, value);
  for (const part of ['s', 't']) pictures.set(part, new Blob([png(512, 512)]), 's.png');
  await hold('createNewStickerSet', pictures);
  const { stickers } = await call('getStickerSet', { name: `all_by_${bot.username}` });
  const sticker = stickers[0].file_id;
  await call('sendSticker', { sticker });
  const upload = new FormData();
  for (const [name, value] of [
    ['user_id', String(ann.id)],
    ['sticker_format', 'static'],
  ] as const)
    upload.set(name, value);
  upload.set('sticker', new Blob([png(512, 512)]), 's.png');
  const { file_id } = await hold('uploadStickerFile', upload);
  const more = { format: 'static', emoji_list: ['👍'] };
  const set = { user_id: ann.id, name: `all_by_${bot.username}` };
  await call('addStickerToSet', { ...set, sticker: { sticker: file_id, ...more } });
  await call('setStickerPositionInSet', { sticker, position: 1 });
  await call('setStickerEmojiList', { sticker, emoji_list: ['👍'] });
  await call('setStickerKeywords', { sticker, keywords: ['a'] });
  await call('setStickerSetTitle', { ...set, title: 'new' });
  await call('replaceStickerInSet', { ...set, old_sticker: sticker, sticker: { sticker, ...more } });
  await call('deleteStickerFromSet', { sticker });
  await call('deleteStickerSet', set);
  const first = await call('sendPhoto', { photo: `${files}a.jpg`, ...caption });
  const { message_id } = first;
  await call('getFile', { file_id: first.photo[0].file_id });
  const media = { type: 'photo', media: `${files}b.jpg` };
  await call('sendMediaGroup', { media: [media, { ...media, type: 'video' }] });
  await call('editMessageCaption', { message_id, caption: 'new' });
  const other = await call('sendPhoto', { photo: `${files}c.jpg` });
  await call('editMessageMedia', { message_id: other.message_id, media: { ...media, type: 'video' } });
  for (const method of ['forwardMessage', 'copyMessage'])
    await call(method, { from_chat_id: chat_id, message_id });
  for (const method of ['forwardMessages', 'copyMessages'])
    await call(method, { from_chat_id: chat_id, message_ids: [message_id, other.message_id] });
  await call('pinChatMessage', { message_id });
  await call('getChat');
  await call('unpinChatMessage');
  await call('unpinAllChatMessages');
  const pin = `/api/chats/${bot.id}/pin`;
  await resultOf(service.app(ann, 'POST', pin, { message_id }));
  await resultOf(service.app(ann, 'GET', `/api/chats/${bot.id}`));
  await resultOf(service.app(ann, 'POST', `/api/chats/${bot.id}/read`, { message_id }));
  await resultOf(service.app(ann, 'POST', `/api/chats/${bot.id}/action`, { action: 'typing' }));
  await resultOf(service.app(ann, 'GET', `/api/names/${bot.username}`));
  await resultOf(service.app(ann, 'GET', `/api/me/bots/${bot.id}/webhook`));
  await itemsOf(service.app(ann, 'GET', `/api/chats/${bot.id}/messages`));
  await call('sendMessage', { text: 'sought' });
  // A search finds a message about a second after it was sent.
  for (const path of [`/api/chats/${bot.id}/search?query=sought`, '/api/search/messages?query=sought'])
    await expect.poll(async () => (await itemsOf(service.app(ann, 'GET', path))).length).toBeGreaterThan(0);
  await resultOf(service.app(ann, 'DELETE', pin));
  await call('deleteMessages', { message_ids: [message_id, other.message_id] });
  await call('getUpdates');
  await call('confirmUpdates', { offset: 0 });
});

test('answers with posts and reactions match their schemas', async () => {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const bot = await service.newBot(ann, 'poster');
  const { id } = await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' }));
  const member = {
    status: 'administrator',
    rights: { can_post_messages: true, can_edit_messages: true },
  };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${id}/members/${bot.id}`, member));
  const call = (method: string, params = {}) => resultOf(service.bot(bot, method, params));
  const post = await call('createPost', { chat_id: id, text: 'news', reply_markup: keyboard });
  const path = `/api/posts/${post.external_id}`;
  const react = (verb: string, at: string, body?: object) => service.app(ben, verb, `${path}/${at}`, body);
  for (const answer of [
    await react('POST', 'reactions', { emoji: '🔥' }),
    await react('POST', 'like'),
    await react('DELETE', 'like'),
    await react('DELETE', 'reactions?emoji=%F0%9F%91%8D'),
  ])
    expect(answer).toMatchObject({ status: 200, body: { my_reactions: expect.arrayContaining(['🔥']) } });
  expect((await call('getPost', { post_id: post.id })).reactions).toHaveLength(1);
  await resultOf(service.app(ben, 'GET', path));
  await itemsOf(service.app(ben, 'GET', `/api/chats/${id}/posts`));
  // Polls, because the list of people who reacted is read from Postgres, which stores a reaction a little later.
  const reactors = async () => (await resultOf(react('GET', 'reactions?emoji=%F0%9F%94%A5'))).items;
  await expect.poll(reactors).toHaveLength(1);
  expect((await react('DELETE', 'reactions')).body).toMatchObject({ ok: true, my_reactions: [] });
  await call('editPost', { post_id: post.id, text: 'newer' });
});

test('answers about scheduled posts match their schemas', async () => {
  const ann = await service.newUser('ann');
  const { id } = await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' }));
  const path = `/api/chats/${id}/scheduled_posts`;
  const entities = [{ type: 'bold', offset: 0, length: 1 }];
  const given = { text: 'x', entities, publish_at: Math.floor(Date.now() / 1_000) + 3_600 };
  const [first, second] = [
    await resultOf(service.app(ann, 'POST', path, given)),
    await resultOf(service.app(ann, 'POST', path, given)),
  ];
  const form = new FormData();
  form.set('publish_at', `${given.publish_at}`);
  form.set('document', new Blob(['paper']), 'paper.txt');
  const headers = { authorization: `Bearer ${ann.token}` };
  const url = `${service.fronts[0]?.url}${path}`;
  const answer = await fetch(url, { method: 'POST', headers, body: form });
  const { result } = (await answer.json()) as { result: { id: number } };
  expect(await (await fetch(`${url}/${result.id}/file`, { headers })).text()).toBe('paper');
  await itemsOf(service.app(ann, 'GET', path));
  await resultOf(service.app(ann, 'PATCH', `${path}/${first.id}`, { text: 'y' }));
  await resultOf(service.app(ann, 'POST', `${path}/${first.id}/publish`));
  await resultOf(service.app(ann, 'DELETE', `${path}/${second.id}`));
});

test('updates about a channel match their schemas', async () => {
  const [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const bot = await service.newBot(ann, 'herald');
  const settings = { type: 'channel', title: 'Town', username: `town_of_${bot.id}` };
  const { id } = await resultOf(service.app(ann, 'POST', '/api/chats', settings));
  const rights = { can_post_messages: true, can_edit_messages: true };
  const member = { status: 'administrator', rights };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${id}/members/${bot.id}`, member));
  const allowed_updates = ['edited_channel_post', 'chat_member', 'message_reaction_count'];
  await resultOf(service.bot(bot, 'getUpdates', { allowed_updates }));
  await resultOf(service.app(ben, 'POST', `/api/chats/${id}/join`));
  const said = await resultOf(service.app(ann, 'POST', `/api/chats/${id}/messages`, { text: 'one' }));
  await resultOf(service.app(ann, 'PATCH', `/api/chats/${id}/messages/${said.message_id}`, { text: 'two' }));
  const post = await resultOf(service.bot(bot, 'createPost', { chat_id: id, text: 'news' }));
  await service.app(ben, 'POST', `/api/posts/${post.external_id}/reactions`, { emoji: '🔥' });
  const kinds = async () =>
    (await resultOf(service.bot(bot, 'getUpdates'))).flatMap((update: object) => Object.keys(update));
  await expect.poll(kinds).toEqual(expect.arrayContaining(allowed_updates));
});

test('answers about webhooks match their schemas, for bots and for owners', async () => {
  const ann = await service.newUser('ann');
  const bot = await service.newBot(ann, 'pushed');
  // No program listens on port 2, so deliveries fail and the update stays pending.
  await resultOf(service.bot(bot, 'setWebhook', { url: 'https://127.0.0.1:2/', secret_token: 'told' }));
  await service.openChat(ann, bot);
  const call = (verb: string, path: string, params?: object) =>
    resultOf(service.app(ann, verb, `/api/me/bots/${bot.id}/webhook/${path}`, params));
  await expect.poll(async () => (await call('GET', 'deliveries')).items.length).toBeGreaterThan(0);
  const info = await resultOf(service.bot(bot, 'getWebhookInfo'));
  expect(info).toMatchObject({ pending_update_count: 1, last_error_message: expect.any(String) });
  const retry_policy = { first_delay: 1, factor: 2, max_age: 60 };
  const route = { name: 'one', url: 'https://127.0.0.1:2/', chat_ids: [-5], retry_policy };
  await resultOf(service.bot(bot, 'setWebhookRoute', { ...route, allowed_updates: ['poll'] }));
  expect(await resultOf(service.bot(bot, 'getWebhookRoutes'))).toMatchObject([
    { chat_ids: [-5], retry_policy },
  ]);
  expect((await call('GET', 'routes')).items).toMatchObject([{ name: 'one', next_try_date: null }]);
  expect(await call('POST', 'ping', { route: 'one' })).toMatchObject({ error: 'Connection refused' });
  await resultOf(service.bot(bot, 'deleteWebhookRoute', { name: 'one' }));
  const { secret } = await call('GET', 'secret');
  expect((await call('POST', 'secret/rotate')).secret).not.toBe(secret);
  const { replay_id } = await call('POST', 'replays', { from_time: 1 });
  expect(await call('DELETE', `replays/${replay_id}`)).toMatchObject({ replay_id });
  expect((await call('GET', 'replays')).items).toMatchObject([{ replay_id }]);
  expect(await call('POST', 'replay', { dead_letters: true })).toEqual({ queued: 0 });
  expect((await call('GET', 'dead_letters')).items).toEqual([]);
  expect(await call('DELETE', 'dead_letters')).toEqual({ discarded: 0 });
  await resultOf(service.bot(bot, 'deleteWebhook'));
});

test('answers about people, their bots and their chats match their schemas', async () => {
  const admin = { token: service.adminToken };
  const body = { username: 'full_name', first_name: 'F', last_name: 'L', language_code: 'en' };
  const { user, token } = await resultOf(service.app(admin, 'POST', '/api/admin/users', body));
  const eve = { ...user, token };
  const call = (verb: string, path: string, params?: object, who = eve) =>
    resultOf(service.app(who, verb, path, params));
  await call('POST', `/api/admin/users/${eve.id}/tokens`, {}, admin);
  await call('GET', '/api/me');
  await call('GET', '/api/me/uploads');
  const bot = await service.newBot(eve, 'owned');
  await call('GET', '/api/me/bots');
  await call('GET', `/api/me/bots/${bot.id}`);
  await call('PATCH', `/api/me/bots/${bot.id}`, { name: { en: 'N' }, description: { '': 'D' } });
  await call('GET', `/api/bots/${bot.username}`);
  await call('GET', `/api/me/bots/${bot.id}/token`);
  await call('POST', `/api/me/bots/${bot.id}/regenerate_token`);
  await service.openChat(eve, bot, 'payload');
  const group = await service.newGroup(eve, 'Team', [bot]);
  await call('PUT', `/api/chats/${group}/members/${bot.id}`, {
    status: 'administrator',
    rights: { can_pin_messages: true },
  });
  expect((await call('GET', `/api/chats/${group}/members?limit=1`)).next_cursor).toBeDefined();
  await call('GET', '/api/chats');
  await call('DELETE', `/api/chats/${group}/members/${bot.id}`);
  await call('DELETE', `/api/admin/users/${eve.id}/tokens`, undefined, admin);
});

test('answers about tokens and pictures match their schemas', async () => {
  const ann = await service.newUser('ann');
  const bot = await service.newBot(ann, 'shown');
  await resultOf(service.app(ann, 'POST', '/api/me/tokens', { name: 'laptop' }));
  await itemsOf(service.app(ann, 'GET', '/api/me/tokens'));
  await resultOf(service.app(ann, 'DELETE', '/api/me/tokens', { name: 'laptop' }));
  const operator = { token: service.adminToken };
  const identity = `/api/admin/users/${ann.id}/identity`;
  await resultOf(service.app(operator, 'PUT', identity, { external_subject: 'ann' }));
  await resultOf(service.app(operator, 'DELETE', identity));
  for (const kind of ['avatar', 'start_picture']) {
    const path = `/api/me/bots/${bot.id}/${kind}`;
    const headers = { authorization: `Bearer ${ann.token}`, 'content-type': 'image/png' };
    const put = await fetch(service.fronts[0].url + path, {
      method: 'PUT',
      headers,
      body: new Uint8Array(png(640, 360)),
    });
    holdEndpoint('PUT', path, { body: (await put.json()) as { ok: boolean } });
    await resultOf(service.app(ann, 'GET', path));
    for (const shown of [`/api/me/bots/${bot.id}`, `/api/bots/${bot.username}`])
      await resultOf(service.app(ann, 'GET', shown));
    await resultOf(service.app(ann, 'DELETE', path));
  }
});

test('answers about settings of people and about forwarding match their schemas', async () => {
  const ann = await service.newUser('ann');
  const app = (verb: string, path: string, body?: object) => resultOf(service.app(ann, verb, path, body));
  await app('PATCH', '/api/me', { language_code: 'ru' });
  const { subscription } = makeBrowser('https://127.0.0.1:2');
  await app('POST', '/api/me/push', subscription);
  await app('GET', '/api/me/push');
  await app('DELETE', '/api/me/push', { endpoint: subscription.endpoint });
  const [from, to] = [await service.newGroup(ann, 'From', []), await service.newGroup(ann, 'To', [])];
  for (const place of ['mute', 'list_pin', 'archive']) {
    await app('PUT', `/api/chats/${to}/${place}`, {});
    await app('DELETE', `/api/chats/${to}/${place}`);
  }
  for (const place of ['list_pin', 'archive']) {
    await app('PUT', `/api/chats/${to}/${place}`);
    for (const list of ['?limit=1', '?archived=true']) await app('GET', `/api/chats${list}`);
    await app('DELETE', `/api/chats/${to}/${place}`);
  }
  for (const text of ['Hello', '']) {
    await app('PUT', `/api/me/drafts/${to}`, { text });
    await app('GET', '/api/me/drafts');
  }
  await app('DELETE', `/api/me/drafts/${to}`);
  const { message_id } = await app('POST', `/api/chats/${from}/messages`, { text: 'Pass it on' });
  await app('POST', `/api/chats/${to}/forward`, { from_chat_id: from, message_ids: [message_id] });
});

test('answers about other people match their schemas', async () => {
  const [ann, eve] = [await service.newUser('ann'), await service.newUser('eve')];
  const app = (verb: string, path: string, body?: object) => resultOf(service.app(eve, verb, path, body));
  const { id } = await app('POST', `/api/people/${ann.username}/chat`, {});
  await app('POST', `/api/chats/${id}/messages`, { text: 'Hello' });
  await app('POST', `/api/people/${ann.username}/block`, {});
  for (const path of ['/api/chats', `/api/people/${ann.id}`, '/api/me/blocked_people'])
    await app('GET', path);
  await app('DELETE', `/api/people/${ann.username}/block`, {});
});

test('answers about the name and avatar of the caller match their schemas', async () => {
  const [ann, eve] = [await service.newUser('ann'), await service.newUser('eve')];
  const app = (who: Parameters<Service['app']>[0], verb: string, path: string, body?: object) =>
    resultOf(service.app(who, verb, path, body));
  await app(ann, 'PATCH', '/api/me', { first_name: 'Anna', last_name: 'Bell' });
  const headers = { authorization: `Bearer ${ann.token}`, 'content-type': 'image/png' };
  const put = await fetch(`${service.fronts[0].url}/api/me/avatar`, {
    method: 'PUT',
    headers,
    body: new Uint8Array(png(64, 64)),
  });
  holdEndpoint('PUT', '/api/me/avatar', { body: (await put.json()) as { ok: boolean } });
  const group = await service.newGroup(ann, 'Yard', [eve]);
  await app(ann, 'POST', `/api/chats/${group}/messages`, { text: 'Hello' });
  const { id } = await app(eve, 'POST', `/api/people/${ann.username}/chat`, {});
  for (const path of ['messages', 'members']) await app(eve, 'GET', `/api/chats/${group}/${path}`);
  for (const path of [`/api/chats/${id}`, `/api/people/${ann.id}`]) await app(eve, 'GET', path);
  await app(ann, 'GET', '/api/me');
  const bot = await service.newBot(ann, 'seer');
  await service.openChat(ann, bot);
  const call = (method: string, params = {}) => resultOf(service.bot(bot, method, params));
  expect(await call('getUserProfilePhotos', { user_id: ann.id })).toMatchObject({ total_count: 1 });
  expect(await call('getChat', { chat_id: ann.id })).toHaveProperty('photo');
  await app(ann, 'DELETE', '/api/me/avatar');
});

test('answers about invitations match their schemas', async () => {
  const [ann, eve] = [await service.newUser('ann'), await service.newUser('eve')];
  const app = (verb: string, path: string, body?: object) => resultOf(service.app(eve, verb, path, body));
  await app('PATCH', '/api/me', { add_to_groups: 'nobody' });
  for (const answer of ['decline', 'accept']) {
    const group = await service.newGroup(ann, 'Readers', []);
    await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${eve.id}`, {}));
    await app('GET', '/api/me/invitations');
    await app('POST', `/api/me/invitations/${group}/${answer}`);
  }
});

test('answers about invite links and join requests match their schemas', async () => {
  const [ann, eve] = [await service.newUser('ann'), await service.newUser('eve')];
  const bot = await service.newBot(ann, 'doorman');
  const group = await service.newGroup(ann, 'Readers');
  const rights = { can_invite_users: true };
  const app = (who: { readonly token: string }, verb: string, path: string, body?: object) =>
    resultOf(service.app(who, verb, path, body));
  const call = (method: string, params = {}) =>
    resultOf(service.bot(bot, method, { chat_id: group, ...params }));
  const at = `/api/chats/${group}`;
  await app(ann, 'PUT', `${at}/members/${bot.id}`, { status: 'administrator', rights });
  await call('exportChatInviteLink');
  await call('getChat');
  const soon = Math.floor(Date.now() / 1_000) + 3_600;
  const { invite_link } = await call('createChatInviteLink', { member_limit: 2, expire_date: soon });
  await call('editChatInviteLink', { invite_link, name: 'Door', creates_join_request: true });
  await app(eve, 'POST', '/api/invite_links/preview', { link: invite_link });
  await app(eve, 'POST', '/api/invite_links/join', { link: invite_link });
  await app(eve, 'POST', '/api/invite_links/withdraw', { link: invite_link });
  await app(eve, 'POST', '/api/invite_links/join', { link: invite_link });
  await app(ann, 'GET', `${at}/join_requests`);
  await app(ann, 'POST', `${at}/join_requests/${eve.id}/decline`);
  await app(eve, 'POST', '/api/invite_links/join', { link: invite_link });
  await call('declineChatJoinRequest', { user_id: eve.id });
  await app(eve, 'POST', '/api/invite_links/join', { link: invite_link });
  await app(ann, 'POST', `${at}/join_requests/${eve.id}/approve`);
  await app(eve, 'POST', `${at}/leave`);
  await app(eve, 'POST', '/api/invite_links/join', { link: invite_link });
  await call('approveChatJoinRequest', { user_id: eve.id });
  const { id } = await app(ann, 'POST', `${at}/invite_links`, { name: 'Own' });
  await app(ann, 'GET', `${at}/invite_links`);
  await app(ann, 'DELETE', `${at}/invite_links/${id}`);
  await call('revokeChatInviteLink', { invite_link });
  const allowed_updates = ['chat_member', 'chat_join_request'];
  await expect
    .poll(async () =>
      (await call('getUpdates', { allowed_updates })).some((u: object) => 'chat_join_request' in u),
    )
    .toBe(true);
});

test('answers about transfers, operators and leak reports match their schemas', async () => {
  const [ann, eve] = [await service.newUser('ann'), await service.newUser('eve')];
  const bot = await service.newBot(ann, 'given');
  const at = `/api/me/bots/${bot.id}`;
  const app = (who: { readonly token: string }, verb: string, path: string, body?: object) =>
    resultOf(service.app(who, verb, path, body));
  const names = (await app(eve, 'GET', '/api/me')).username;
  await app(ann, 'PUT', `${at}/write_access`, { policy: 'selected', usernames: [names] });
  for (const answer of ['decline', 'accept']) {
    await app(ann, 'POST', `${at}/transfer`, { username: names, confirm: true });
    await app(eve, 'GET', '/api/me/transfers');
    await app(eve, 'POST', `/api/me/transfers/${bot.id}/${answer}`);
  }
  await app(eve, 'GET', `${at}/audit`);
  const operator = { token: service.adminToken };
  for (const verb of ['POST', 'DELETE'])
    for (const of of [`bots/${bot.id}`, `users/${ann.id}`])
      await app(operator, verb, `/api/admin/${of}/suspension`);
  await app(operator, 'GET', `/api/admin/bots/${bot.id}/figures`);
  for (const path of ['overview', 'history', 'bots', 'audit', `bots/${bot.id}/dead_letters`])
    await app(operator, 'GET', `/api/admin/${path}`);
  const accounts = ['accounts?query=ann', `bots/${bot.id}`, `bots/${bot.id}/attempts`];
  for (const path of [...accounts, `users/${eve.id}`, `users/${eve.id}/bots`])
    await app(operator, 'GET', `/api/admin/${path}`);
  await app(operator, 'POST', `/api/admin/bots/${bot.id}/dead_letters/replay`, {});
  await app(operator, 'POST', '/api/admin/reserved_usernames', { username: 'kept_name' });
  await app(operator, 'GET', '/api/admin/reserved_usernames');
  await app(operator, 'DELETE', '/api/admin/reserved_usernames/kept_name');
  const { token } = await app(eve, 'GET', `${at}/token`);
  const path = '/api/leaks/report';
  const body = JSON.stringify([{ token, type: 'petrel', url: 'https://a.example/', source: 'content' }]);
  const headers = {
    'content-type': 'application/json',
    'github-public-key-identifier': partner.id,
    'github-public-key-signature': signatureOf(partner, body),
  };
  const response = await fetch(service.fronts[0].url + path, { method: 'POST', headers, body });
  holdEndpoint('POST', path, { body: (await response.json()) as { ok?: boolean } });
  await app(eve, 'DELETE', at);
  await app(eve, 'DELETE', '/api/me', { confirm: true });
  await app(operator, 'DELETE', `/api/admin/users/${ann.id}`, { confirm: true });
});

test('the tests in this file call every method and endpoint that answers in JSON, with known exceptions', () => {
  const all = [
    ...methods.filter(({ events }) => !events).map(({ name }) => name),
    ...endpoints.filter(({ contentType }) => !contentType).map(({ verb, path }) => `${verb} ${path}`),
  ];
  // setMessageReaction has no result, because it refuses every call. `sign_in.test.ts` and `link_previews.test.ts`
  // check the calls that need another server.
  const others = [
    ...['setMessageReaction', 'POST /api/sign_in/provider', 'POST /api/sign_in/session'],
    'GET /api/chats/{chat_id}/messages/{message_id}/link_preview',
  ];
  expect(all.filter((name) => !answered.has(name)).sort()).toEqual(others.sort());
});

test('answers and updates have the field types of the Bot API', async () => {
  const kinds = recorder.answers.flatMap(({ name, value }) =>
    name === 'Update' ? Object.keys(value as object) : [],
  );
  expect(updateKinds.filter((kind) => !kinds.includes(kind))).toEqual([]);
  expect(await differencesFromBotApi(recorder.answers)).toEqual([]);
});

test('the comparison with the Bot API reports missing fields and different types', async () => {
  const message = { message_id: 1, date: 1, chat: { id: 1, type: 'private' } };
  const differences = await differencesFromBotApi([
    { name: 'sendMessage', value: { ...message, more: 1 } },
    { name: 'sendMessage', value: { ...message, chat: { id: 1 } } },
    { name: 'Update', value: { update_id: 1, message: { ...message, chat: { id: 1, type: 'secret' } } } },
    { name: 'setMyName', value: false },
    { name: 'createPost', value: message },
  ]);
  expect(differences).toEqual([
    expect.stringMatching(/^sendMessage: Property 'type' is missing .*"chat":{"id":1}}$/),
    expect.stringMatching(/^Update: Type '"secret"' is not assignable /),
    expect.stringMatching(/^setMyName: Type 'false' is not assignable to type 'true'/),
    expect.stringMatching(/^createPost: .* to type 'never'/),
  ]);
});

test('the schema check finds unknown fields and missing required fields', () => {
  const ok = { id: 1, is_bot: true, first_name: 'B', username: 'b_bot' };
  const can = { can_join_groups: true, can_read_all_group_messages: true, supports_inline_queries: false };
  const answer = (result: object) => ({ body: { ok: true, result } });
  holdMethod('getMe', answer({ ...ok, ...can }));
  expect(() => holdMethod('getme', answer({ ...ok, ...can, more: 1 }))).toThrow('more');
  expect(() => holdMethod('getMe', answer(ok))).toThrow('can_join_groups');
  expect(() => holdEndpoint('GET', '/api/me?x=1', answer({ id: 1 }))).toThrow('GET /api/me');
});

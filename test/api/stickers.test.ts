import { Api, InputFile } from 'grammy';
import pg from 'pg';
import sharp from 'sharp';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { fileLimits } from '../../src/files/limits.js';
import { ruleLimits } from '../../src/rules/limits.js';
import { storeLimits } from '../../src/store/limits.js';
import { type Eviction, openEviction } from '../interface/eviction.js';
import { mp4, png } from '../support/samples.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let eviction: Eviction;
let db: pg.Pool;
let ann: TestUser;
let bot: TestBot;
let other: TestBot;
let api: Api;
let name: string;

onSharedService(async (running) => {
  service = running;
  eviction = await openEviction(service);
  db = new pg.Pool({ connectionString: service.databaseUrl, max: 1 });
  ann = await service.newUser('ann');
});
beforeEach(async () => {
  bot = await service.newBot(ann, 'artist');
  other = await service.newBot(ann, 'rival');
  await service.openChat(ann, bot);
  await service.openChat(ann, other);
  api = new Api(bot.token, { apiRoot: service.fronts[0]?.url as string });
  name = `cats_by_${bot.username}`;
});
afterAll(async () => {
  await eviction?.close();
  await db?.end();
});

const call = (method: string, params: object, by = bot) => service.bot(by, method, { ...params });
const refuses = async (answer: ReturnType<typeof call>, text: string) => {
  const { status, body } = await answer;
  expect([status, body.description]).toEqual([400, `Bad Request: ${text}`]);
};
const newest = async (chat = bot.id) =>
  (await itemsOf(service.app(ann, 'GET', `/api/chats/${chat}/messages?limit=1`)))[0];
const picture = (bytes = png(512, 400)) => new InputFile(bytes, 's.png');
const input = (emoji = '😺', bytes?: Buffer) => ({
  sticker: picture(bytes),
  format: 'static' as const,
  emoji_list: [emoji],
});
const ids = async (set = name) => (await api.getStickerSet(set)).stickers.map(({ file_id }) => file_id);
const uniques = async () =>
  (await api.getStickerSet(name)).stickers.map(({ file_unique_id }) => file_unique_id);
const make = (emoji: readonly string[] = ['😺', '😸', '😹']) =>
  api.createNewStickerSet(
    ann.id,
    name,
    'Cats',
    emoji.map((one) => input(one)),
  );
/** Calls that change the sticker set `name`. The set contains `sticker`. */
const changes = (sticker: string): ReadonlyArray<readonly [method: string, params: object]> => [
  ['addStickerToSet', { user_id: ann.id, name, sticker: { sticker, format: 'static', emoji_list: ['😺'] } }],
  ['setStickerSetTitle', { name, title: 'Taken' }],
  ['setStickerPositionInSet', { sticker, position: 1 }],
  ['setStickerEmojiList', { sticker, emoji_list: ['🐶'] }],
  ['setStickerKeywords', { sticker, keywords: ['dog'] }],
  [
    'replaceStickerInSet',
    {
      ...{ user_id: ann.id, name, old_sticker: sticker },
      sticker: { sticker, format: 'static', emoji_list: ['🐶'] },
    },
  ],
  ['deleteStickerFromSet', { sticker }],
  ['deleteStickerSet', { name }],
];

test('a sticker can be sent as an upload, by file_id or by URL', async () => {
  const webp = await sharp(png(300, 512)).webp().toBuffer();
  const sent = await api.sendSticker(ann.id, new InputFile(webp, 's.webp'), { emoji: '😺' });
  expect(sent.sticker).toEqual({
    ...{ file_id: expect.any(String), file_unique_id: expect.any(String), file_size: webp.length },
    ...{ type: 'regular', width: 300, height: 512, is_animated: false, is_video: false, emoji: '😺' },
  });
  expect(sent).not.toHaveProperty('caption');
  expect(await newest()).toMatchObject({ message_id: sent.message_id, sticker: sent.sticker });
  const { file_id } = sent.sticker;
  expect((await api.sendSticker(ann.id, file_id)).sticker).toEqual(sent.sticker);
  const { file_path } = await api.getFile(file_id);
  expect(file_path).toMatch(/^stickers\/.*\.webp$/);
  const answer = await fetch(`${service.fronts[1]?.url}/file/bot${bot.token}/${file_path}`);
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(webp);
  const url = 'https://example.org/s.webp';
  const byUrl = await resultOf(call('sendSticker', { chat_id: ann.id, sticker: url }));
  expect(byUrl.sticker).toMatchObject({ width: 0, height: 0, type: 'regular' });
  expect((await newest()).sticker.url).toBe(url);
});

test('a sticker can be forwarded, copied and posted, but cannot have a caption', async () => {
  await make();
  const [file_id] = await ids();
  const { message_id, sticker } = await resultOf(call('sendSticker', { chat_id: ann.id, sticker: file_id }));
  expect(sticker).toMatchObject({ set_name: name, emoji: '😺', width: 512, height: 400 });
  for (const [method, given, text] of [
    ['editMessageText', { text: 'x' }, 'there is no text in the message to edit'],
    ['editMessageCaption', { caption: 'x' }, 'there is no caption in the message to edit'],
  ] as const)
    await refuses(call(method, { chat_id: ann.id, message_id, ...given }), text);
  const source = { chat_id: ann.id, from_chat_id: ann.id, message_id };
  expect(await resultOf(call('forwardMessage', source))).toMatchObject({ sticker });
  await resultOf(call('copyMessage', { ...source, caption: 'ignored' }));
  await eviction.evict(new Set([String(ann.id), String(bot.id)]));
  const copy = await newest();
  expect(copy.sticker).toEqual(sticker);
  expect(copy).not.toHaveProperty('caption');
  const chats = await itemsOf(service.app(ann, 'GET', '/api/chats'));
  expect(chats.find(({ id }: { id: number }) => id === bot.id).last_message).toMatchObject({
    kind: 'sticker',
  });
  const channel = await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' }));
  await resultOf(
    service.app(ann, 'PUT', `/api/chats/${channel.id}/members/${bot.id}`, {
      status: 'administrator',
      rights: { can_post_messages: true },
    }),
  );
  await resultOf(call('sendSticker', { chat_id: channel.id, sticker: file_id }));
  const [post] = await itemsOf(service.app(ann, 'GET', `/api/chats/${channel.id}/posts`));
  expect(post.media).toMatchObject({ type: 'sticker', set_name: name });
});

test('members can send stickers only with the permission can_send_other_messages', async () => {
  await make();
  const group = await service.newGroup(ann, 'Quiet', [bot]);
  const [sticker] = await ids();
  const admin = await service.newBot(ann, 'guard');
  const rights = { status: 'administrator', rights: { can_restrict_members: true } };
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${admin.id}`, rights));
  const permissions = { can_send_messages: true, can_send_photos: true };
  await resultOf(
    call(
      'restrictChatMember',
      { chat_id: group, user_id: bot.id, permissions, use_independent_chat_permissions: true },
      admin,
    ),
  );
  await refuses(
    call('sendSticker', { chat_id: group, sticker }),
    'not enough rights to send stickers to the chat',
  );
});

test.each<[string, Buffer, string]>([
  ['has no side of 512 pixels', png(511, 511), 'STICKER_PNG_DIMENSIONS'],
  ['has a side over 512 pixels', png(513, 512), 'STICKER_PNG_DIMENSIONS'],
  ['is a video', mp4(512, 512, 1), 'STICKER_PNG_NOPNG'],
  ['is a text', Buffer.from('not a picture'), 'STICKER_PNG_NOPNG'],
  [
    'is over 512 KiB',
    Buffer.concat([png(512, 512), Buffer.alloc(fileLimits.sticker_bytes_max)]),
    'file is too big',
  ],
])('a sticker that %s is refused everywhere, and nothing is stored', async (_, bytes, text) => {
  const stored = async () => (await resultOf(service.app(ann, 'GET', '/api/me/uploads'))).bytes;
  await make(['😺']);
  const before = await stored();
  const failure = expect.objectContaining({ description: `Bad Request: ${text}` });
  await expect(api.sendSticker(ann.id, picture(bytes))).rejects.toEqual(failure);
  await expect(api.uploadStickerFile(ann.id, 'static', picture(bytes))).rejects.toEqual(failure);
  await expect(api.addStickerToSet(ann.id, name, input('😺', bytes))).rejects.toEqual(failure);
  const two = [input('😺'), input('😸', bytes)];
  await expect(api.createNewStickerSet(ann.id, `two_by_${bot.username}`, 'T', two)).rejects.toEqual(failure);
  expect(await stored()).toBe(before);
  expect(await ids()).toHaveLength(1);
});

test('a bot creates a sticker set, and any bot can read it', async () => {
  expect(await make()).toBe(true);
  const set = await resultOf(call('getStickerSet', { name: name.toUpperCase() }, other));
  expect(set).toEqual({
    ...{ name, title: 'Cats', sticker_type: 'regular' },
    stickers: ['😺', '😸', '😹'].map((emoji) =>
      expect.objectContaining({ emoji, set_name: name, type: 'regular', width: 512, height: 400 }),
    ),
  });
  const shared = await resultOf(
    call('sendSticker', { chat_id: ann.id, sticker: set.stickers[1].file_id }, other),
  );
  expect(shared.sticker).toEqual(set.stickers[1]);
});

test('stickers are added, moved, replaced, described and removed', async () => {
  await make(['😺', '😸']);
  const { file_id } = await api.uploadStickerFile(ann.id, 'static', picture());
  const added = {
    ...{ sticker: file_id, format: 'static' as const },
    ...{ emoji_list: ['🐱' as const, '😻' as const], keywords: ['cat'] },
  };
  expect(await api.addStickerToSet(ann.id, name, added)).toBe(true);
  const [a, b, c] = (await uniques()) as [string, string, string];
  const idOf = async (at: number) => (await ids())[at] as string;
  expect(await api.setStickerPositionInSet(await idOf(2), 0)).toBe(true);
  expect(await uniques()).toEqual([c, a, b]);
  await api.setStickerPositionInSet(await idOf(0), 119);
  expect(await uniques()).toEqual([a, b, c]);
  const old = await idOf(0);
  await api.setStickerEmojiList(old, ['🐶', '🐕']);
  expect((await api.getStickerSet(name)).stickers[0]).toMatchObject({ emoji: '🐶', file_unique_id: a });
  await api.setStickerKeywords(old, ['dog', 'hund']);
  const { rows } = await db.query('select stickers from sticker_sets where name = lower($1)', [name]);
  expect(rows[0].stickers.map(({ keywords }: { keywords: string[] }) => keywords)).toEqual([
    ['dog', 'hund'],
    [],
    ['cat'],
  ]);
  await api.setStickerSetTitle(name, 'Dogs');
  expect((await api.getStickerSet(name)).title).toBe('Dogs');
  await api.replaceStickerInSet(ann.id, name, old, input('🐼'));
  const [replaced, second, third] = await uniques();
  expect([second, third]).toEqual([b, c]);
  expect(replaced).not.toBe(a);
  await api.deleteStickerFromSet(await idOf(1));
  expect(await uniques()).toEqual([replaced, c]);
  await refuses(call('deleteStickerFromSet', { sticker: old }), 'STICKERSET_NOT_MODIFIED');
  expect(await api.deleteStickerSet(name)).toBe(true);
  await refuses(call('getStickerSet', { name }), 'STICKERSET_INVALID');
  // A sticker of a deleted set can still be sent.
  await resultOf(call('sendSticker', { chat_id: ann.id, sticker: old }));
});

test('only the bot that made a sticker set can change it, and another bot of the same owner cannot', async () => {
  await make();
  const before = await api.getStickerSet(name);
  const [sticker] = await ids();
  for (const [method, params] of changes(sticker as string))
    await refuses(call(method, params, other), 'STICKERSET_INVALID');
  expect(await api.getStickerSet(name)).toEqual(before);
});

test('simultaneous changes of a sticker set do not overwrite each other', async () => {
  await make(['😺']);
  const uploads = await Promise.all(
    Array.from({ length: 8 }, () => api.uploadStickerFile(ann.id, 'static', picture())),
  );
  await Promise.all(
    uploads.map(({ file_id: sticker }, i) =>
      resultOf(
        service.bot(
          bot,
          'addStickerToSet',
          { user_id: ann.id, name, sticker: { sticker, format: 'static', emoji_list: ['😺'] } },
          i % 2,
        ),
      ),
    ),
  );
  expect(new Set(await uniques()).size).toBe(9);
});

test.each<[string, (username: string) => string]>([
  ['does not end with the username', () => 'cats'],
  ['ends with another username', (username) => `cats_by_x${username}`],
  ['begins with a digit', (username) => `1cats_by_${username}`],
  ['has two underscores in a row', (username) => `cats__x_by_${username}`],
  ['has other letters', (username) => `кот_by_${username}`],
  ['has 65 characters', (username) => `${'c'.repeat(61 - username.length)}_by_${username}`],
])('a name that %s is refused', async (_, nameOf) => {
  const given = { user_id: ann.id, name: nameOf(bot.username), title: 'T' };
  const stickers = [{ sticker: 'x', format: 'static', emoji_list: ['😺'] }];
  await refuses(call('createNewStickerSet', { ...given, stickers }), 'invalid sticker set name is specified');
});

const keywordsText = 'sticker keywords are invalid: up to 20, with up to 64 characters together';
test.each<[method: string, params: object, text: string]>([
  ['createNewStickerSet', { title: '' }, 'PACK_TITLE_INVALID'],
  ['createNewStickerSet', { title: 'x'.repeat(65) }, 'PACK_TITLE_INVALID'],
  ['createNewStickerSet', { stickers: [] }, 'STICKERS_EMPTY'],
  ['createNewStickerSet', { sticker_type: 'mask' }, 'only regular sticker sets are supported'],
  ['createNewStickerSet', { user_id: 1 }, 'user not found'],
  ['uploadStickerFile', { user_id: 1, sticker: 'attach://x', sticker_format: 'static' }, 'user not found'],
  [
    'uploadStickerFile',
    { sticker: 'https://example.org/a.png', sticker_format: 'static' },
    'wrong file identifier/HTTP URL specified',
  ],
  ['uploadStickerFile', { sticker_format: 'video' }, 'only static stickers are supported'],
  ['getStickerSet', { name: 'unknown' }, 'STICKERSET_INVALID'],
  ['setStickerSetTitle', { title: '  ' }, 'PACK_TITLE_INVALID'],
  [
    'setStickerPositionInSet',
    { sticker: 'x', position: -1 },
    'parameter "position" must be an integer of at least 0',
  ],
  ['deleteStickerFromSet', { sticker: 'x' }, 'wrong file identifier/HTTP URL specified'],
  ['setStickerEmojiList', { sticker: 'x', emoji_list: [] }, 'invalid sticker emojis'],
  ['setStickerEmojiList', { sticker: 'x', emoji_list: ['a'] }, 'invalid sticker emojis'],
  ['setStickerEmojiList', { sticker: 'x', emoji_list: Array(21).fill('😺') }, 'invalid sticker emojis'],
  ['setStickerKeywords', { sticker: 'x', keywords: Array(21).fill('a') }, keywordsText],
  ['setStickerKeywords', { sticker: 'x', keywords: ['a'.repeat(65)] }, keywordsText],
  ['sendSticker', { sticker: 'attach://x' }, 'wrong file identifier/HTTP URL specified'],
  ['sendSticker', { sticker: 'https://example.org/a.png', emoji: 'ab' }, 'invalid sticker emojis'],
  ['sendSticker', {}, 'parameter "sticker" is required'],
])('%s refuses %j', async (method, params, text) => {
  const stickers = [{ sticker: 'x', format: 'static', emoji_list: ['😺'] }];
  await refuses(
    call(method, { chat_id: ann.id, user_id: ann.id, name, title: 'T', stickers, ...params }),
    text,
  );
});

test('a sticker is refused if its file is a URL or a photo, has another format, or is already in the set', async () => {
  await make(['😺']);
  const { photo } = await api.sendPhoto(ann.id, picture());
  const add = (sticker: string | undefined, more: object = {}) =>
    call('addStickerToSet', {
      ...{ user_id: ann.id, name },
      sticker: { sticker, format: 'static', emoji_list: ['😺'], ...more },
    });
  const wrong = 'wrong file identifier/HTTP URL specified';
  await refuses(add('https://example.org/a.png'), wrong);
  const byUrl = await api.sendSticker(ann.id, 'https://example.org/a.png');
  await refuses(add(byUrl.sticker.file_id), wrong);
  await refuses(add(photo[0]?.file_id), "can't use file of type Photo as Sticker");
  await refuses(add('x', { format: 'animated' }), 'only static stickers are supported');
  await refuses(add((await ids())[0]), 'sticker is already in the set');
  await refuses(call('deleteStickerFromSet', { sticker: byUrl.sticker.file_id }), 'STICKERSET_INVALID');
  await refuses(
    call('setStickerPositionInSet', { sticker: photo[0]?.file_id, position: 0 }),
    'STICKERSET_INVALID',
  );
  const failure = expect.objectContaining({
    description: 'Bad Request: sticker set name is already occupied',
  });
  await expect(make()).rejects.toEqual(failure);
});

test('a call with an invalid sticker set is refused before the uploaded files are measured', async () => {
  await make(['😺']);
  const [old] = (await ids()) as [string];
  const bad = () => input('😺', png(511, 511));
  const failure = (text: string) => expect.objectContaining({ description: `Bad Request: ${text}` });
  const create = (set: string) => api.createNewStickerSet(ann.id, set, 'T', [bad()]);
  await expect(create(name)).rejects.toEqual(failure('sticker set name is already occupied'));
  const replace = (set: string, sticker: string) => api.replaceStickerInSet(ann.id, set, sticker, bad());
  await expect(replace('unknown', old)).rejects.toEqual(failure('STICKERSET_INVALID'));
  const { sticker } = await api.sendSticker(ann.id, picture());
  await expect(replace(name, sticker.file_id)).rejects.toEqual(failure('STICKERSET_INVALID'));
  await api.addStickerToSet(ann.id, name, input('😸'));
  await api.deleteStickerFromSet(old);
  await expect(replace(name, old)).rejects.toEqual(failure('STICKERSET_NOT_MODIFIED'));
  await db.query(
    `update sticker_sets set stickers = (select jsonb_agg(jsonb_set(stickers->0, '{key}', to_jsonb(md5(n::text))))
       from generate_series(1, $2::int) n)
      where name = lower($1)`,
    [name, ruleLimits.stickers_per_set_max],
  );
  await expect(api.addStickerToSet(ann.id, name, bad())).rejects.toEqual(failure('STICKERS_TOO_MUCH'));
  const rival = new Api(other.token, { apiRoot: service.fronts[0]?.url as string });
  await expect(rival.addStickerToSet(ann.id, name, bad())).rejects.toEqual(failure('STICKERSET_INVALID'));
  await db.query(
    `insert into sticker_sets (name, bot_id, shown_name, title, stickers)
     select n || 'y' || $1::bigint, $1::bigint, n, 't', '[]' from generate_series(2, $2::int) n`,
    [bot.id, storeLimits.sticker_sets_per_bot_max],
  );
  await expect(create(`one_by_${bot.username}`)).rejects.toEqual(failure('too many sticker sets'));
});

test('one upload cannot become two stickers of a set', async () => {
  const form = new FormData();
  form.set('p', new Blob([png(512, 512)]), 's.png');
  const sticker = { sticker: 'attach://p', format: 'static', emoji_list: ['😺'] };
  form.set('stickers', JSON.stringify([sticker, sticker]));
  for (const [field, value] of Object.entries({ user_id: String(ann.id), name, title: 'T' }))
    form.set(field, value);
  const answer = await fetch(`${service.fronts[0]?.url}/bot${bot.token}/createNewStickerSet`, {
    method: 'POST',
    body: form,
  });
  expect(await answer.json()).toMatchObject({ description: 'Bad Request: sticker is already in the set' });
  await refuses(call('getStickerSet', { name }), 'STICKERSET_INVALID');
});

test('an emoji is stored without variation selectors', async () => {
  const selectors = '\ufe0f'.repeat(62);
  await make([`😺${selectors}`]);
  const [sticker] = await ids();
  const stored = async () =>
    (await db.query('select stickers from sticker_sets where name = lower($1)', [name])).rows[0].stickers[0]
      .emoji;
  expect(await stored()).toEqual(['😺']);
  await resultOf(call('setStickerEmojiList', { sticker, emoji_list: [`\u2764${selectors}`, '🐶'] }));
  expect(await stored()).toEqual(['\u2764', '🐶']);
  const sent = await api.sendSticker(ann.id, picture(), { emoji: `😺${selectors}` });
  expect(sent.sticker.emoji).toBe('😺');
});

test('a sticker set refuses files of other accounts', async () => {
  await make(['😺', '😸']);
  const [theirs] = await ids();
  const bob = await service.newUser('bob');
  const thief = await service.newBot(bob, 'thief');
  await service.openChat(bob, thief);
  const wrong = 'wrong file identifier/HTTP URL specified';
  const sticker = { sticker: theirs, format: 'static', emoji_list: ['😺'] };
  const set = `own_by_${thief.username}`;
  const create = (stickers: object[]) =>
    call('createNewStickerSet', { user_id: bob.id, name: set, title: 'T', stickers }, thief);
  await refuses(create([sticker]), wrong);
  // The file belongs to the account, so another bot of the same owner may use it.
  const copy = { user_id: ann.id, name: `copy_by_${other.username}`, title: 'T', stickers: [sticker] };
  await resultOf(call('createNewStickerSet', copy, other));
  const thieves = new Api(thief.token, { apiRoot: service.fronts[0]?.url as string });
  const { file_id } = await thieves.uploadStickerFile(bob.id, 'static', picture());
  await resultOf(create([{ ...sticker, sticker: file_id }]));
  await refuses(call('addStickerToSet', { user_id: bob.id, name: set, sticker }, thief), wrong);
  const old = (await resultOf(call('getStickerSet', { name: set }))).stickers[0].file_id;
  const replace = { user_id: bob.id, name: set, old_sticker: old, sticker };
  await refuses(call('replaceStickerInSet', replace, thief), wrong);
});

test('no sticker set is created if the bot is deleted during the call', async () => {
  const client = await db.connect();
  await client.query('begin');
  await client.query('update bots set deleted_at = now(), owner_id = null where id = $1', [bot.id]);
  const making = make(['😺']).catch((error: unknown) => error);
  const waiting = async () =>
    (await client.query('select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))'))
      .rowCount;
  await expect.poll(waiting).toBeGreaterThan(0);
  await client.query('commit');
  client.release();
  expect(await making).toMatchObject({ error_code: 401 });
  expect((await db.query('select from sticker_sets where bot_id = $1', [bot.id])).rowCount).toBe(0);
});

test('a sticker set has up to 120 stickers, and a bot has up to 100 sets', async () => {
  await make(['😺']);
  await db.query(
    `update sticker_sets set stickers = (select jsonb_agg(jsonb_set(stickers->0, '{key}', to_jsonb(md5(n::text))))
       from generate_series(1, $2::int) n) where name = lower($1)`,
    [name, ruleLimits.stickers_per_set_max - 1],
  );
  await api.addStickerToSet(ann.id, name, input());
  const failure = (text: string) => expect.objectContaining({ description: `Bad Request: ${text}` });
  await expect(api.addStickerToSet(ann.id, name, input())).rejects.toEqual(failure('STICKERS_TOO_MUCH'));
  expect((await api.getStickerSet(name)).stickers).toHaveLength(120);
  await db.query(
    `insert into sticker_sets (name, bot_id, shown_name, title, stickers)
     select n || 'x' || $1::bigint, $1::bigint, n, 't', '[]' from generate_series(2, $2::int) n`,
    [bot.id, storeLimits.sticker_sets_per_bot_max],
  );
  const one = `one_by_${bot.username}`;
  await expect(api.createNewStickerSet(ann.id, one, 'T', [input()])).rejects.toEqual(
    failure('too many sticker sets'),
  );
});

test('the sticker sets of a bot are exported, stay with a transferred bot, and are deleted with the bot', async () => {
  await make(['😺']);
  const second = `Birds_by_${bot.username}`;
  await api.createNewStickerSet(ann.id, second, 'Birds', [input()]);
  const exported = await fetch(`${service.fronts[0]?.url}/api/me/export`, {
    headers: { authorization: `Bearer ${ann.token}` },
  });
  const lines = (await exported.text())
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  expect(lines.filter(({ kind, bot_id }) => kind === 'sticker_set' && bot_id === bot.id)).toEqual([
    { kind: 'sticker_set', bot_id: bot.id, sticker_set: await api.getStickerSet(second) },
    { kind: 'sticker_set', bot_id: bot.id, sticker_set: await api.getStickerSet(name) },
  ]);
  const heir = await service.newUser('heir');
  const to = { username: heir.username, confirm: true };
  await resultOf(service.app(ann, 'POST', `/api/me/bots/${bot.id}/transfer`, to));
  expect((await call('getStickerSet', { name }, other)).body.result).toMatchObject({ name, title: 'Cats' });
  await resultOf(service.app(heir, 'DELETE', `/api/me/bots/${bot.id}`));
  expect((await db.query('select from sticker_sets where bot_id = $1', [bot.id])).rowCount).toBe(0);
  await refuses(call('getStickerSet', { name }, other), 'STICKERSET_INVALID');
});

test('a transferred bot can copy stickers from one of its sets to another', async () => {
  await make(['😺', '😸']);
  const [first, second] = await ids();
  const heir = await service.newUser('heir');
  const to = { username: heir.username, confirm: true };
  await resultOf(service.app(ann, 'POST', `/api/me/bots/${bot.id}/transfer`, to));
  const token = (await resultOf(service.app(heir, 'POST', `/api/me/bots/${bot.id}/regenerate_token`))).token;
  bot = { ...bot, token };
  api = new Api(token, { apiRoot: service.fronts[0]?.url as string });
  await service.openChat(heir, bot);
  const copy = `copy_by_${bot.username}`;
  const of = (file_id: string) => ({ sticker: file_id, format: 'static' as const, emoji_list: ['🐱'] });
  await api.createNewStickerSet(heir.id, copy, 'Copy', [of(first as string)]);
  await api.addStickerToSet(heir.id, copy, of(second as string));
  expect((await api.getStickerSet(copy)).stickers.map(({ file_unique_id }) => file_unique_id)).toEqual(
    await uniques(),
  );
  // Removes the sticker from the set that its `file_id` names. After that, the `file_id` cannot be added to a set.
  await api.deleteStickerFromSet(first as string);
  await api.deleteStickerFromSet((await ids(copy))[0] as string);
  const again = { user_id: heir.id, name: copy, sticker: of(first as string) };
  await refuses(call('addStickerToSet', again), 'wrong file identifier/HTTP URL specified');
  // A bot cannot add stickers of another bot's set, even if both bots have the same owner.
  const thief = await service.newBot(heir, 'thief');
  await service.openChat(heir, thief);
  const stolen = {
    user_id: heir.id,
    name: `x_by_${thief.username}`,
    title: 'X',
    stickers: [of(second as string)],
  };
  await refuses(call('createNewStickerSet', stolen, thief), 'wrong file identifier/HTTP URL specified');
});

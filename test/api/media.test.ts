import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Api as GrammyApi, InputFile } from 'grammy';
import { Telegram } from 'telegraf';
import { expect, test } from 'vitest';
import { mp4, png, wav } from '../support/samples.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { field, type Part, post } from '../support/uploads.js';

const run = promisify(execFile);
const picture = png(64, 48);
const wrong = 'Bad Request: wrong file identifier/HTTP URL specified';

let service: Service;
let user: TestUser;
let bot: TestBot;
let other: TestBot;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'files');
  other = await service.newBot(user, 'other');
  await service.openChat(user, bot);
  await service.openChat(user, other);
});

const root = (front = 0) => service.fronts[front]?.url as string;
const urlOf = (method: string) => `${root()}/bot${bot.token}/${method}`;
const fileUrl = (path: string, token = bot.token, front = 1) => `${root(front)}/file/bot${token}/${path}`;

const sentBy = async (
  method: string,
  parts: readonly Part[],
  options: Parameters<typeof post>[2] = {},
  query = '',
): Promise<Answer['body']> => resultOf(post(urlOf(method) + query, parts, options));

const filePart = (name: string, filename: string, body: Buffer | string): Part => ({
  head: `Content-Disposition: form-data; name="${name}"; filename="${filename}"`,
  body,
});

const upload = async (
  method: string,
  name: string,
  bytes: Buffer,
  filename: string,
  fields: readonly Part[] = [],
) => sentBy(method, [field('chat_id', user.id), ...fields, filePart(name, filename, bytes)]);

const storedFiles = async () =>
  (await readdir(service.env.FILES_DIR as string, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  ).length;

async function contentOf(fileId: string, asker = other): Promise<Buffer> {
  const { file_path } = await resultOf(service.bot(asker, 'getFile', { file_id: fileId }, 1));
  const answer = await fetch(fileUrl(file_path, asker.token));
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

test('an uploaded picture can be sent again by its file_id on every node', async () => {
  const message = await upload('sendPhoto', 'photo', picture, 'a.png', [
    field('caption', '<b>x</b>'),
    field('parse_mode', 'HTML'),
  ]);
  const photo = {
    file_id: expect.stringMatching(/^[\w-]{60,200}$/),
    file_unique_id: expect.stringMatching(/^[\w-]{16}$/),
    width: 64,
    height: 48,
    file_size: picture.length,
  };
  expect(message).toMatchObject({
    photo: [photo],
    caption: 'x',
    caption_entities: [{ type: 'bold', offset: 0, length: 1 }],
  });
  expect(message.text).toBeUndefined();
  const [{ file_id, file_unique_id }] = message.photo;
  expect(await resultOf(service.bot(bot, 'getFile', { file_id }, 1))).toEqual({
    file_id,
    file_unique_id,
    file_size: picture.length,
    file_path: `photos/${file_id}.png`,
  });
  expect(await contentOf(file_id)).toEqual(picture);
  const again = await resultOf(service.bot(other, 'sendPhoto', { chat_id: user.id, photo: file_id }, 1));
  expect(again.photo).toEqual(message.photo);
  const [seen] = await itemsOf(service.app(user, 'GET', `/api/chats/${other.id}/messages?limit=1`));
  expect(seen.photo).toEqual(message.photo);
});

test('a message has a separate field for each kind of media', async () => {
  const video = await upload('sendVideo', 'video', mp4(320, 240, 7), 'v.mp4', [field('has_spoiler', 'true')]);
  expect(video.video).toMatchObject({
    width: 320,
    height: 240,
    duration: 7,
    mime_type: 'video/mp4',
    file_name: 'v.mp4',
  });
  expect(video.has_media_spoiler).toBe(true);
  const audio = await upload('sendAudio', 'audio', wav(2), 's.wav', [
    field('performer', 'P'),
    field('title', 'T'),
  ]);
  expect(audio.audio).toMatchObject({ duration: 2, performer: 'P', title: 'T', mime_type: 'audio/wav' });
  const voice = await upload('sendVoice', 'voice', wav(1), 'v.wav');
  expect(voice.voice).toMatchObject({ duration: 1, mime_type: 'audio/wav', file_size: 8_044 });
  const animation = await upload('sendAnimation', 'animation', mp4(32, 24, 1), 'a.mp4');
  expect(animation.animation).toMatchObject({ width: 32, height: 24, duration: 1 });
  expect(animation.document).toMatchObject({ file_id: animation.animation.file_id, mime_type: 'video/mp4' });
  const document = await upload('sendDocument', 'document', Buffer.from('hello'), 'ü "x".txt');
  expect(document.document).toMatchObject({ file_size: 5, mime_type: 'text/plain' });
});

test('grammY and Telegraf upload files and send URLs', async () => {
  const grammy = new GrammyApi(bot.token, { apiRoot: root() });
  const sent = await grammy.sendPhoto(user.id, new InputFile(picture, 'grüße 1.png'), { caption: 'g' });
  expect(await contentOf(sent.photo[0]?.file_id as string)).toEqual(picture);
  const document = await grammy.sendDocument(user.id, new InputFile(Buffer.from('abc'), 'grüße 1.txt'));
  expect(document.document.file_name).toBe('grüße 1.txt');
  const telegraf = new Telegram(bot.token, { apiRoot: root() });
  const second = await telegraf.sendDocument(
    user.id,
    { source: Buffer.from('def'), filename: 'ö.txt' },
    { caption: 't' },
  );
  expect(second).toMatchObject({ document: { file_name: 'ö.txt', file_size: 3 }, caption: 't' });
  expect(await contentOf(second.document.file_id)).toEqual(Buffer.from('def'));
  const link = await telegraf.getFileLink(second.document.file_id);
  expect(Buffer.from(await (await fetch(link)).arrayBuffer()).toString()).toBe('def');
  const byUrl = await grammy.sendPhoto(user.id, 'https://example.org/p.png?x=1&y=2');
  expect(byUrl.photo).toEqual([expect.objectContaining({ width: 0, height: 0 })]);
});

test('curl -F uploads a file', async () => {
  const { stdout } = await run('curl', [
    ...['-s', `${root()}/bot${bot.token}/sendDocument`, '-F', `chat_id=${user.id}`],
    ...['-F', 'document=@package.json;type=application/json'],
  ]);
  const { document } = JSON.parse(stdout).result;
  expect(document).toMatchObject({ file_name: 'package.json', mime_type: 'application/json' });
});

test.each([
  [
    'lower-case part headers, an unquoted raw file name, attach:// and chunked encoding',
    'content-disposition:form-data;name=f1;filename=é 1.txt\r\ncontent-type:text/plain',
    { chunked: true },
    'é 1.txt',
    'attach://f1',
  ],
  [
    'a part without content type, and no line break after the last boundary',
    'Content-Disposition: form-data; name="document"; filename="a.bin"',
    { end: '' },
    'a.bin',
    null,
  ],
  [
    'a part with a content type but no file name',
    'Content-Disposition: form-data; name="document"\r\nContent-Type: application/octet-stream',
    {},
    undefined,
    null,
  ],
])('an upload with %s is accepted', async (_, head, options, name, attach) => {
  const parts = [
    { head, body: Buffer.from('some bytes') },
    ...(attach ? [field('document', attach)] : []),
    field('method', 'sendDocument'),
  ];
  // Sends the same request with `chat_id` in its query instead of its body.
  const { document } = await sentBy('sendDocument', parts, options, `?chat_id=${user.id}`);
  expect(document.file_name).toBe(name);
  expect(document.file_size).toBe(10);
  expect((await contentOf(document.file_id)).toString()).toBe('some bytes');
});

test('if media are sent by URL, the service stores the URL and not the file', async () => {
  const url = 'https://example.org/a%20b.jpg?c=d';
  const message = await resultOf(service.bot(bot, 'sendPhoto', { chat_id: user.id, photo: url }));
  expect(message.photo).toEqual([
    { file_id: expect.any(String), file_unique_id: expect.any(String), width: 0, height: 0 },
  ]);
  const { file_id, file_unique_id } = message.photo[0];
  expect(await resultOf(service.bot(bot, 'getFile', { file_id }))).toEqual({ file_id, file_unique_id });
  const [seen] = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`));
  expect(seen.photo[0].url).toBe(url);
  const again = await resultOf(service.bot(bot, 'sendPhoto', { chat_id: user.id, photo: file_id }));
  expect(again.photo).toEqual(message.photo);
  expect((await service.app(user, 'GET', `/api/files/${file_id}`)).status).toBe(404);
});

test('invalid media are refused, and no message is created', async () => {
  const newest = async () =>
    (await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`)))[0].message_id;
  const before = await newest();
  const { document } = await upload('sendDocument', 'document', Buffer.from('x'), 'x.txt');
  const base = before + 1;
  const refused = async (params: object, text: string, method = 'sendPhoto') =>
    expect((await service.bot(bot, method, { chat_id: user.id, ...params })).body).toEqual({
      ok: false,
      error_code: 400,
      description: text,
    });
  await refused({}, 'Bad Request: parameter "photo" is required');
  for (const photo of [
    'http://example.org/a.png',
    'ftp://example.org/a',
    'javascript:alert(1)',
    'https://',
    'https://u:p@example.org/a',
    'https://example.org:6379/a',
    'https://example.org:22/a',
    'attach://absent',
    'file:///etc/passwd',
    'AgACAgIAAxkBAAI',
    '../../etc/passwd',
    `https://example.org/${'a'.repeat(2_050)}`,
  ])
    await refused({ photo }, wrong);
  await refused({ photo: document.file_id }, "Bad Request: can't use file of type Document as Photo");
  await refused(
    { photo: 'https://example.org/a', caption: 'a'.repeat(1_025) },
    'Bad Request: message caption is too long',
  );
  const id: string = document.file_id;
  const flipped = id.slice(0, -4) + (id.at(-4) === 'A' ? 'B' : 'A') + id.slice(-3);
  await refused({ file_id: flipped }, wrong, 'getFile');
  const empty = await post(urlOf('sendDocument'), [
    field('chat_id', user.id),
    { head: 'Content-Disposition: form-data; name="document"; filename="e"', body: '' },
  ]);
  expect(empty.body.description).toBe('Bad Request: file must be non-empty');
  const noPicture = await post(urlOf('sendPhoto'), [
    field('chat_id', user.id),
    {
      head: 'Content-Disposition: form-data; name="photo"; filename="a.png"\r\nContent-Type: image/png',
      body: '<svg/>',
    },
  ]);
  expect(noPicture.body.description).toBe('Bad Request: IMAGE_PROCESS_FAILED');
  expect(await newest()).toBe(base);
  expect(
    (
      await service.bot(bot, 'sendPhoto', {
        chat_id: user.id,
        photo: 'https://example.org/a',
        caption: '😀'.repeat(1_024),
      })
    ).status,
  ).toBe(200);
});

test('a person sends a picture with a caption, as an upload or by URL', async () => {
  const form = new FormData();
  form.set('text', 'look');
  form.set('photo', new Blob([new Uint8Array(picture)]), 'p.png');
  const answer = await fetch(`${root()}/api/chats/${bot.id}/messages`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${user.token}` },
  });
  const { result } = (await answer.json()) as { result: { photo: [{ file_id: string }]; caption: string } };
  expect(result).toMatchObject({ caption: 'look', photo: [{ width: 64, height: 48 }] });
  expect(await contentOf(result.photo[0].file_id)).toEqual(picture);
  const byUrl = await resultOf(
    service.app(user, 'POST', `/api/chats/${bot.id}/messages`, {
      photo: 'https://example.org/x.png',
      caption: 'as editing calls it',
    }),
  );
  expect(byUrl.photo[0].url).toBe('https://example.org/x.png');
  expect(byUrl.caption).toBe('as editing calls it');
  const updates = await resultOf(service.bot(bot, 'getUpdates', { offset: -1 }));
  expect(updates[0].message.photo[0].url).toBeUndefined();
  expect((await service.app(user, 'POST', `/api/chats/${bot.id}/messages`, {})).body.description).toBe(
    'Bad Request: message text is empty',
  );
});

test('a thumbnail is scaled to 320 pixels', async () => {
  const thumbnail = filePart('thumbnail', 't.png', png(640, 320));
  for (const [method, name, body] of [
    ['sendVideo', 'video', mp4(320, 240, 7)],
    ['sendAnimation', 'animation', mp4(32, 24, 1)],
    ['sendAudio', 'audio', wav(1)],
    ['sendDocument', 'document', Buffer.from('a document')],
  ] as const) {
    const sent = await upload(method, name, body, 'x', [thumbnail]);
    const shown = sent[name].thumbnail;
    expect(shown).toMatchObject({ width: 320, height: 160, file_size: expect.any(Number) });
    const bytes = await contentOf(shown.file_id);
    expect([bytes.length, bytes.toString('hex', 0, 3)]).toEqual([shown.file_size, 'ffd8ff']);
    const again = { chat_id: user.id, [name]: sent[name].file_id };
    expect((await resultOf(service.bot(bot, method, again)))[name].thumbnail).toEqual(shown);
    const [seen] = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`));
    expect(seen[name].thumbnail).toEqual(shown);
  }
});

test('in albums and edits, `attach://` can name an uploaded thumbnail', async () => {
  const described = (name: string) => ({
    type: 'document',
    media: `attach://${name}`,
    thumbnail: 'attach://t',
  });
  const parts = [
    filePart('a', 'a.txt', 'a'),
    filePart('b', 'b.txt', 'b'),
    filePart('t', 't.png', png(20, 10)),
  ];
  const media = JSON.stringify([described('a'), { ...described('b'), thumbnail: undefined }]);
  const [first, second] = await sentBy('sendMediaGroup', [
    field('chat_id', user.id),
    field('media', media),
    ...parts,
  ]);
  expect(first.document.thumbnail).toMatchObject({ width: 20, height: 10 });
  expect(second.document.thumbnail).toBeUndefined();
  const edited = await sentBy('editMessageMedia', [
    field('chat_id', user.id),
    field('message_id', second.message_id),
    field('media', JSON.stringify(described('b'))),
    ...parts,
  ]);
  expect(edited.document.thumbnail).toMatchObject({ width: 20, height: 10 });
});

test('an invalid, too large or missing thumbnail is refused', async () => {
  const before = await storedFiles();
  const document = filePart('document', 'a.txt', 'a');
  const send = (...parts: Part[]) => post(urlOf('sendDocument'), [field('chat_id', user.id), ...parts]);
  for (const [thumbnail, description] of [
    [filePart('thumbnail', 't', 'no picture'), 'Bad Request: picture must be a PNG, JPEG or WebP image'],
    [filePart('thumbnail', 't', png(8, 8, [9_000, 9_000])), 'Bad Request: picture has too many pixels'],
    [field('thumbnail', 'attach://missing'), wrong],
  ] as const)
    expect((await send(document, thumbnail)).body).toMatchObject({ error_code: 400, description });
  expect(await storedFiles()).toBe(before);
  const url = {
    chat_id: user.id,
    video: 'https://example.org/v.mp4',
    thumbnail: 'https://example.org/t.jpg',
  };
  expect((await resultOf(service.bot(bot, 'sendVideo', url))).video).not.toHaveProperty('thumbnail');
  const cover = await service.bot(bot, 'sendVideo', { ...url, cover: 'https://example.org/t.jpg' });
  expect(cover.body.description).toBe('Bad Request: parameter "cover" is not supported');
});

test('if a message is refused, the file store keeps none of its uploaded files', async () => {
  const before = await storedFiles();
  expect(before).toBeGreaterThan(5);
  const stranger = await service.newUser('eve');
  const thumbnail = filePart('thumbnail', 't.png', picture);
  const refused = await post(urlOf('sendDocument'), [
    field('chat_id', stranger.id),
    filePart('document', 'a', 'abc'),
    thumbnail,
  ]);
  expect(refused.body.description).toBe("Forbidden: bot can't initiate conversation with a user");
  expect(await storedFiles()).toBe(before);
});

test('a file_id is refused after its file was removed from the file store', async () => {
  const { document } = await upload('sendDocument', 'document', Buffer.from('to be gone'), 'gone.txt');
  const { file_path } = await resultOf(service.bot(bot, 'getFile', { file_id: document.file_id }));
  const folder = service.env.FILES_DIR as string;
  const key = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => {
    const path = join(folder, name);
    return statSync(path).isFile() && readFileSync(path, 'utf8') === 'to be gone';
  });
  rmSync(join(folder, key as string));
  const refusal = { ok: false, error_code: 400, description: wrong };
  const named = { chat_id: user.id, document: document.file_id };
  expect((await service.bot(bot, 'getFile', { file_id: document.file_id })).body).toEqual(refusal);
  expect((await service.bot(bot, 'sendDocument', named)).body).toEqual(refusal);
  expect((await fetch(fileUrl(file_path))).status).toBe(404);
});

test('behaviour §4: an edit changes show_caption_above_media only if the edit also sets the caption', async () => {
  const photo = 'https://example.org/above.jpg';
  const given = { chat_id: user.id, photo, caption: 'up', show_caption_above_media: true };
  const sent = await resultOf(service.bot(bot, 'sendPhoto', given));
  expect(sent).toMatchObject({ caption: 'up', show_caption_above_media: true });
  const at = { chat_id: user.id, message_id: sent.message_id };
  const edited = await resultOf(service.bot(bot, 'editMessageCaption', { ...at, caption: 'down' }));
  expect(edited).toMatchObject({ caption: 'down' });
  expect(edited).not.toHaveProperty('show_caption_above_media');
  const plain = await resultOf(service.bot(bot, 'sendPhoto', { ...given, show_caption_above_media: false }));
  expect(plain).not.toHaveProperty('show_caption_above_media');
});

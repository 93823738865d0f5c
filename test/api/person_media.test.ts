import { readdir } from 'node:fs/promises';
import { Bot } from 'grammy';
import sharp from 'sharp';
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

let service: Service;
let ann: TestUser;
let bob: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  ann = await service.newUser('ann');
  bob = await service.newUser('bob');
  bot = await service.newBot(ann, 'receiver');
  await service.openChat(ann, bot);
});

type Files = Readonly<Record<string, readonly [bytes: Buffer, filename: string, type?: string]>>;

async function post(
  path: string,
  files: Files,
  fields: Readonly<Record<string, unknown>> = {},
  { by = ann, front = 0, key = '' } = {},
): Promise<Pick<Answer, 'status' | 'body'>> {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields))
    body.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  for (const [name, [bytes, filename, type = 'application/octet-stream']] of Object.entries(files))
    body.set(name, new Blob([new Uint8Array(bytes)], { type }), filename);
  const headers = { authorization: `Bearer ${by.token}`, ...(key && { 'idempotency-key': key }) };
  const answer = await fetch(service.fronts[front]?.url + path, { method: 'POST', headers, body });
  return { status: answer.status, body: (await answer.json()) as Answer['body'] };
}

const messagesOf = (chat: number) => `/api/chats/${chat}/messages`;
const send = (files: Files, fields = {}, options = {}) => post(messagesOf(bot.id), files, fields, options);
const refused = (description: string, status = 400) => ({ status, body: { ok: false, description } });
const storedFiles = async () =>
  (await readdir(service.env.FILES_DIR as string, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  ).length;
const newest = async (chat: number, by = ann) =>
  (await itemsOf(service.app(by, 'GET', `${messagesOf(chat)}?limit=1`)))[0];

/** Runs a grammY bot until it has handled the messages that `cause` sends. */
async function receivedBy(asker: TestBot, count: number, cause: () => Promise<unknown>) {
  const grammy = new Bot(asker.token, { client: { apiRoot: service.fronts[1]?.url as string } });
  const messages: Answer['body'][] = [];
  const done = new Promise<void>((resolve, reject) => {
    grammy.on('message', ({ message }) => {
      if (messages.push(message) === count) resolve();
    });
    grammy.catch(reject);
  });
  await grammy.init();
  const running = grammy.start({ drop_pending_updates: true, onStart: () => void cause().catch(() => {}) });
  await done;
  await grammy.stop();
  await running;
  return { messages, api: grammy.api };
}

async function contentOf(fileId: string): Promise<Buffer> {
  const { file_path } = await resultOf(service.bot(bot, 'getFile', { file_id: fileId }, 1));
  const answer = await fetch(`${service.fronts[1]?.url}/file/bot${bot.token}/${file_path}`);
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

const samples = {
  photo: [png(64, 48), 'p.png'],
  video: [mp4(320, 240, 3), 'v.mp4'],
  animation: [mp4(32, 24, 1), 'g.mp4'],
  audio: [wav(2), 'a.wav'],
  voice: [wav(1), 'o.wav'],
  document: [Buffer.from('some words'), 'größe 1.txt', 'text/plain'],
  video_note: [mp4(240, 240, 2), 'n.mp4'],
} as const satisfies Files;
type FileKind = keyof typeof samples;
const kinds = Object.keys(samples) as FileKind[];
const fileOf = (message: Answer['body'], kind: string) => [message[kind]].flat().at(-1);

test('a photo is stored without its metadata, and a document is stored unchanged', async () => {
  const place = {
    IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 12/1 0/1' },
    IFD0: { Copyright: 'secret place' },
  };
  const given = await sharp({ create: { width: 96, height: 64, channels: 3, background: 'red' } })
    .withMetadata({ orientation: 6 })
    .withExif(place)
    .jpeg()
    .toBuffer();
  expect(given.includes('secret place')).toBe(true);
  const sent = (await send({ photo: [given, 'p.jpg', 'image/jpeg'] })).body.result;
  const form = new FormData();
  form.set('chat_id', String(ann.id));
  form.set('photo', new Blob([new Uint8Array(given)], { type: 'image/jpeg' }), 'p.jpg');
  const url = `${service.fronts[0]?.url}/bot${bot.token}/sendPhoto`;
  const byBot = ((await (await fetch(url, { method: 'POST', body: form })).json()) as Answer['body']).result;
  for (const { photo } of [sent, byBot]) {
    const stored = await contentOf(photo[0].file_id);
    expect(stored.includes('secret place')).toBe(false);
    expect(photo[0]).toMatchObject({ file_size: stored.length, width: 96, height: 64 });
    expect(await sharp(stored).metadata()).toMatchObject({ orientation: 6, width: 96, height: 64 });
  }
  const { document } = (await send({ document: [given, 'p.jpg', 'image/jpeg'] })).body.result;
  expect((await contentOf(document.file_id)).equals(given)).toBe(true);
});

test('a grammY bot receives and downloads every kind of file that a person uploads', async () => {
  const { messages } = await receivedBy(bot, kinds.length, async () => {
    for (const kind of kinds) {
      const caption = kind === 'video_note' ? {} : { caption: '<b>hi</b>', parse_mode: 'HTML' };
      await resultOf(send({ [kind]: samples[kind] }, caption) as Promise<Answer>);
    }
  });
  const byKind = Object.fromEntries(kinds.map((kind, i) => [kind, messages[i]]));
  for (const kind of kinds) {
    const file = fileOf(byKind[kind], kind);
    expect(file.file_size, kind).toBe(samples[kind][0].length);
    expect(await contentOf(file.file_id), kind).toEqual(samples[kind][0]);
    expect(byKind[kind].from.id).toBe(ann.id);
    if (kind !== 'video_note')
      expect(byKind[kind]).toMatchObject({ caption: 'hi', caption_entities: [{ type: 'bold' }] });
  }
  expect(byKind.photo.photo.at(-1)).toMatchObject({ width: 64, height: 48 });
  expect(byKind.video.video).toMatchObject({ width: 320, height: 240, duration: 3, file_name: 'v.mp4' });
  expect(byKind.animation.animation).toMatchObject({ width: 32, duration: 1 });
  expect(byKind.audio.audio).toMatchObject({ duration: 2, mime_type: 'audio/wav', file_name: 'a.wav' });
  expect(byKind.voice.voice).toMatchObject({ duration: 1, mime_type: 'audio/wav' });
  expect(byKind.document.document).toMatchObject({ file_name: 'größe 1.txt', mime_type: 'text/plain' });
  expect(byKind.video_note.video_note).toMatchObject({ length: 240, duration: 2 });
});

test('a bot receives the album of a person in order, with one media_group_id', async () => {
  const media = [
    { type: 'photo', media: 'attach://a', caption: 'one' },
    { type: 'video', media: 'attach://b', has_spoiler: true },
    { type: 'photo', media: 'attach://c' },
  ];
  const files: Files = { a: [png(10, 20), 'a.png'], b: samples.video, c: [png(30, 40), 'c.png'] };
  const { messages } = await receivedBy(bot, 3, () => post(`/api/chats/${bot.id}/albums`, files, { media }));
  const [first] = messages;
  expect(first.media_group_id).toMatch(/^\d{1,19}$/);
  expect(messages).toMatchObject([
    { photo: [{ width: 10 }], caption: 'one', media_group_id: first.media_group_id },
    { video: { width: 320 }, has_media_spoiler: true, media_group_id: first.media_group_id },
    { photo: [{ width: 30 }], media_group_id: first.media_group_id },
  ]);
  expect(messages.map(({ message_id }) => message_id - first.message_id)).toEqual([0, 1, 2]);
});

test('a bot receives a location and a contact from a person', async () => {
  const location = { latitude: 41.3, longitude: 69.2, horizontal_accuracy: 12 };
  const contact = { phone_number: '+99890', first_name: 'Olim', last_name: 'K' };
  const { messages } = await receivedBy(bot, 2, async () => {
    const path = messagesOf(bot.id);
    await resultOf(service.app(ann, 'POST', path, { location }));
    await resultOf(service.app(ann, 'POST', path, { contact: JSON.stringify(contact) }));
  });
  expect(messages).toMatchObject([{ location }, { contact }]);
  expect(await newest(bot.id)).toMatchObject({ contact });
});

test('an upload that is repeated with its idempotency key creates one message', async () => {
  const before = [await storedFiles(), (await newest(bot.id)).message_id];
  const once = await send({ document: samples.document }, {}, { key: 'k1' });
  const again = await send({ document: samples.document }, {}, { key: 'k1', front: 1 });
  expect(again).toEqual(once);
  expect([await storedFiles(), (await newest(bot.id)).message_id]).toEqual([
    (before[0] as number) + 1,
    before[1] + 1,
  ]);
  const other = await send({ document: [Buffer.from('other'), 'x.txt'] }, {}, { key: 'k1' });
  expect(other).toMatchObject(refused('Bad Request: idempotency key was used with other parameters'));
});

test('a person can send a file again by its file_id, but only as the same kind of media', async () => {
  const file = (await resultOf(send({ document: samples.document }) as Promise<Answer>)).document;
  const count = await storedFiles();
  const again = await resultOf(send({}, { document: file.file_id }, { front: 1 }) as Promise<Answer>);
  expect(again.document).toEqual(file);
  expect(await storedFiles()).toBe(count);
  expect(await send({}, { photo: file.file_id })).toMatchObject({ status: 400 });
});

test('a file_id is refused if the service did not create it', async () => {
  const { document } = await resultOf(send({ document: samples.document }) as Promise<Answer>);
  const id: string = document.file_id;
  const flipped = id.slice(0, 40) + (id[40] === 'A' ? 'B' : 'A') + id.slice(41);
  for (const wrong of [flipped, document.file_unique_id, id.slice(0, -1), `${id}A`]) {
    expect(await send({}, { document: wrong }, { by: ann })).toMatchObject(
      refused('Bad Request: wrong file identifier/HTTP URL specified'),
    );
    expect((await service.app(bob, 'GET', `/api/files/${wrong}`)).status).toBe(404);
  }
});

test('a refused call stores neither a message nor a file', async () => {
  const before = [await storedFiles(), (await newest(bot.id)).message_id];
  const { photo, video, document } = samples;
  const album = `/api/chats/${bot.id}/albums`;
  const items = (count: number) =>
    Array.from({ length: count }, () => ({ type: 'photo', media: 'attach://photo' }));
  const cases: Array<[Promise<unknown>, string]> = [
    [send({ photo, video }), 'Bad Request: parameter "video" must be absent if "photo" is given'],
    [
      send({ document }, { location: { latitude: 1, longitude: 1 }, document: 'attach://document' }),
      'Bad Request: parameter "location" must be absent if "document" is given',
    ],
    [
      send({ video_note: samples.video_note }, { caption: 'no' }),
      'Bad Request: parameter "caption" must be absent if "video_note" is given',
    ],
    [
      send({}, { contact: { phone_number: '1', first_name: 'x' }, text: 'no' }),
      'Bad Request: parameter "text" must be absent if "contact" is given',
    ],
    [
      send({ photo }, { text: 'lost', caption: 'kept' }),
      'Bad Request: parameter "text" must be absent if "caption" is given',
    ],
    [
      send({}, { text: 'x', caption: 'y' }),
      'Bad Request: parameter "text" must be absent if "caption" is given',
    ],
    [
      send({}, { location: { latitude: 91, longitude: 0 } }),
      'Bad Request: parameter "location.latitude" must be a number from -90 to 90',
    ],
    [send({}, { contact: 'x' }), 'Bad Request: parameter "contact" must be a contact'],
    [
      send({ photo: [Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'x.svg', 'image/svg+xml'] }),
      'Bad Request: IMAGE_PROCESS_FAILED',
    ],
    [send({ photo: [Buffer.alloc(0), 'x.png'] }), 'Bad Request: file must be non-empty'],
    [send({ photo: [png(1, 1, [60_000, 60_000]), 'bomb.png'] }), 'Bad Request: IMAGE_PROCESS_FAILED'],
    [send({ photo: [png(10, 210), 'narrow.png'] }), 'Bad Request: IMAGE_PROCESS_FAILED'],
    [
      send({ video_note: samples.video }),
      'Bad Request: video note must be a square video with sides of up to 640 pixels',
    ],
    [send({ photo }, { caption: 'x'.repeat(1_025) }), 'Bad Request: message caption is too long'],
    [send({ photo }, { reply_to_message_id: 999_999 }), 'Bad Request: message to be replied not found'],
    [
      post(album, { photo }, { media: items(11) }),
      'Bad Request: parameter "media" must be an array of 2 to 10 media',
    ],
    [
      post(album, { photo }, { media: items(1) }),
      'Bad Request: parameter "media" must be an array of 2 to 10 media',
    ],
    [
      post(
        album,
        { photo, document },
        { media: [...items(1), { type: 'document', media: 'attach://document' }] },
      ),
      "Bad Request: Document can't be mixed with other media types",
    ],
    [
      post(album, { photo }, { media: [...items(1), { type: 'photo', media: 'attach://absent' }] }),
      'Bad Request: wrong file identifier/HTTP URL specified',
    ],
  ];
  for (const [call, description] of cases) expect(await call).toMatchObject(refused(description));
  expect([await storedFiles(), (await newest(bot.id)).message_id]).toEqual(before);
});

test('restrictions, write access, blocks and membership apply to media sent by people', async () => {
  const group = await service.newGroup(ann, 'Team', [bot, bob]);
  await resultOf(
    service.app(ann, 'PUT', `/api/chats/${group}/members/${bot.id}`, {
      status: 'administrator',
      rights: { can_restrict_members: true },
    }),
  );
  const only = { permissions: { can_send_messages: true }, use_independent_chat_permissions: true };
  await resultOf(service.bot(bot, 'setChatPermissions', { chat_id: group, ...only }));
  const before = await storedFiles();
  const guarded = await service.newBot(ann, 'guarded');
  await service.openChat(bob, guarded);
  await resultOf(service.app(ann, 'PUT', `/api/me/bots/${guarded.id}/write_access`, { policy: 'owner' }));
  const { photo } = samples;
  const by = bob;
  expect(await post(messagesOf(guarded.id), { photo }, {}, { by })).toMatchObject(
    refused("Forbidden: you can't write to this bot", 403),
  );
  expect(await post(messagesOf(bot.id), { photo }, {}, { by: await service.newUser('eve') })).toMatchObject({
    status: 404,
  });
  const outsider = await service.newUser('mallory');
  for (const path of ['messages', 'albums']) {
    const media = [0, 1].map(() => ({ type: 'photo', media: 'attach://photo' }));
    const answer = await post(`/api/chats/${group}/${path}`, { photo }, path === 'albums' ? { media } : {}, {
      by: outsider,
    });
    expect(answer.status).toBe(403);
  }
  const words = {
    photo: 'photos',
    video: 'videos',
    audio: 'music',
    voice: 'voice notes',
    document: 'documents',
    animation: 'animations',
    video_note: 'video notes',
  };
  for (const [kind, what] of Object.entries(words)) {
    const answer = await post(messagesOf(group), { [kind]: samples[kind as FileKind] }, {}, { by });
    expect(answer).toMatchObject(refused(`Bad Request: not enough rights to send ${what} to the chat`));
  }
  const media = [0, 1].map(() => ({ type: 'photo', media: 'attach://photo' }));
  expect(await post(`/api/chats/${group}/albums`, { photo }, { media }, { by })).toMatchObject(
    refused('Bad Request: not enough rights to send photos to the chat'),
  );
  const channel = (await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' })))
    .id;
  await resultOf(service.app(ann, 'PUT', `/api/chats/${channel}/members/${bob.id}`, {}));
  expect(await post(messagesOf(channel), { photo }, {}, { by })).toMatchObject(
    refused('Bad Request: need administrator rights in the channel chat'),
  );
  expect(await storedFiles()).toBe(before);
});

test('a file that a browser could run as a page is served as a download, and the scripts in the file cannot run', async () => {
  const page = Buffer.from('<html><script>alert(1)</script></html>');
  const xml = Buffer.from('<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>');
  for (const kind of ['document', 'video', 'audio', 'voice', 'animation']) {
    for (const [bytes, type] of [
      [page, 'text/html'],
      [xml, 'image/svg+xml'],
    ] as const) {
      const sent = await resultOf(send({ [kind]: [bytes, 'a.html', type] }) as Promise<Answer>);
      const file = fileOf(sent, kind);
      const answer = await fetch(`${service.fronts[0]?.url}/api/files/${file.file_id}`, {
        headers: { authorization: `Bearer ${ann.token}` },
      });
      expect(answer.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox");
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
      expect(answer.headers.get('content-disposition')).toMatch(/^attachment/);
      if (kind !== 'document') expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    }
  }
});

test('media of people are forwarded, edited, exported and deleted like other messages', async () => {
  const sent = await resultOf(send({ photo: samples.photo }, { caption: 'sunset' }) as Promise<Answer>);
  const path = `${messagesOf(bot.id)}/${sent.message_id}`;
  const edited = await resultOf(service.app(ann, 'PATCH', path, { caption: 'dawn' }));
  expect(edited).toMatchObject({ caption: 'dawn', photo: sent.photo });
  const group = await service.newGroup(ann, 'Friends', [bob]);
  await resultOf(
    service.app(ann, 'POST', `/api/chats/${group}/forward`, {
      from_chat_id: bot.id,
      message_ids: [sent.message_id],
    }),
  );
  expect(await newest(group, bob)).toMatchObject({ caption: 'dawn', photo: sent.photo });
  const shown = await itemsOf(service.app(bob, 'GET', '/api/chats'));
  expect(shown.find(({ id }: { id: number }) => id === group).last_message).toMatchObject({ kind: 'photo' });
  expect((await service.app(ann, 'DELETE', path)).status).toBe(200);
  expect((await newest(bot.id)).message_id).not.toBe(sent.message_id);
});

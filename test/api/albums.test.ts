import { readdir } from 'node:fs/promises';
import { Api as GrammyApi, InputFile, InputMediaBuilder } from 'grammy';
import { expect, test } from 'vitest';
import { mp4, png } from '../support/samples.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let user: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'albums');
  await service.openChat(user, bot);
});

const url = (n: number) => `https://example.org/${n}.jpg`;
const photos = (count: number) => Array.from({ length: count }, (_, n) => ({ type: 'photo', media: url(n) }));
const send = (media: unknown, more: object = {}) =>
  service.bot(bot, 'sendMediaGroup', { chat_id: user.id, media, ...more });
const history = () => itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=20`));
const kept = async () =>
  (await readdir(service.env.FILES_DIR as string, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  ).length;

test('an album sent by grammY keeps its order and captions', async () => {
  const api = new GrammyApi(bot.token, { apiRoot: service.fronts[0].url });
  const { photo } = await api.sendPhoto(user.id, new InputFile(png(3, 4), 'earlier.png'));
  const earlier = photo[0]?.file_id as string;
  const album = await api.sendMediaGroup(user.id, [
    InputMediaBuilder.photo(new InputFile(png(10, 20), 'é 1.png'), {
      caption: '<i>one</i>',
      parse_mode: 'HTML',
    }),
    InputMediaBuilder.video(new InputFile(mp4(32, 24, 2), 'v.mp4'), { has_spoiler: true }),
    InputMediaBuilder.photo(url(1)),
    InputMediaBuilder.photo(earlier),
  ]);
  const groups = album.map((message) => (message as { readonly media_group_id?: string }).media_group_id);
  const [group] = groups;
  expect(group).toMatch(/^\d{1,19}$/);
  const first = album[0]?.message_id as number;
  expect(album.map(({ message_id }) => message_id - first)).toEqual([0, 1, 2, 3]);
  expect(groups).toEqual(Array(4).fill(group));
  expect(album[0]).toMatchObject({
    photo: [{ width: 10, height: 20 }],
    caption: 'one',
    caption_entities: [{ type: 'italic', offset: 0, length: 3 }],
  });
  expect(album[1]).toMatchObject({ video: { width: 32, height: 24, duration: 2 }, has_media_spoiler: true });
  expect(album[3]).toMatchObject({ photo: [{ file_id: earlier, width: 3, height: 4 }] });
  const seen = (await history()).slice(0, 4).reverse();
  expect(seen.map((m: { media_group_id: string }) => m.media_group_id)).toEqual(Array(4).fill(group));
  expect(seen[2].photo[0].url).toBe(url(1));
});

test('if an album is sent as a reply, each of its items is a reply', async () => {
  const [{ message_id }] = await history();
  const more = { reply_parameters: { message_id }, protect_content: true };
  const album = await resultOf(send(photos(10), more));
  expect(album).toHaveLength(10);
  for (const message of album) {
    expect(message).toMatchObject({ reply_to_message: { message_id }, has_protected_content: true });
  }
  const other = await resultOf(send(JSON.stringify(photos(2))));
  expect(other[0].media_group_id).not.toBe(album[0].media_group_id);
});

test('audio files and documents cannot be mixed with other media types', async () => {
  for (const type of ['audio', 'document']) {
    const one = { type, media: url(1) };
    expect(await resultOf(send([one, one]))).toHaveLength(2);
    const name = type === 'audio' ? 'Audio' : 'Document';
    expect((await send([one, ...photos(1)])).body).toEqual({
      ok: false,
      error_code: 400,
      description: `Bad Request: ${name} can't be mixed with other media types`,
    });
  }
});

test('an album with one refused item stores neither messages nor files', async () => {
  const before = [await kept(), (await history())[0].message_id];
  const form = async (media: unknown, chat = user.id) => {
    const body = new FormData();
    body.set('chat_id', String(chat));
    body.set('media', JSON.stringify(media));
    body.set('a', new Blob([new Uint8Array(png(5, 5))]), 'a.png');
    const answer = await fetch(`${service.fronts[0].url}/bot${bot.token}/sendMediaGroup`, {
      method: 'POST',
      body,
    });
    return ((await answer.json()) as { description: string }).description;
  };
  const good = { type: 'photo', media: 'attach://a' };
  const list = 'Bad Request: parameter "media" must be an array of 2 to 10 media';
  expect(await form([good, { type: 'photo', media: 'attach://b' }])).toBe(
    'Bad Request: wrong file identifier/HTTP URL specified',
  );
  expect(await form([good, { ...good, caption: 'a'.repeat(1_025) }])).toBe(
    'Bad Request: message caption is too long',
  );
  expect(await form([good, good], (await service.newUser('eve')).id)).toBe(
    "Forbidden: bot can't initiate conversation with a user",
  );
  expect((await send(photos(1))).body.description).toBe(list);
  expect((await send(photos(11))).body.description).toBe(list);
  expect((await send('x')).body.description).toBe(list);
  expect((await send(undefined)).body.description).toBe('Bad Request: parameter "media" is required');
  expect((await send([{ type: 'animation', media: url(1) }, ...photos(1)])).body.description).toBe(
    'Bad Request: parameter "media.0.type" must be photo, video, audio or document',
  );
  expect([await kept(), (await history())[0].message_id]).toEqual(before);
});

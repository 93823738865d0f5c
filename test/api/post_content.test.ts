import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { png } from '../support/samples.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { field, post as upload } from '../support/uploads.js';

let service: Service;
let bot: TestBot;
let owner: TestUser;
let chat_id: number;
const url = 'https://example.com/a.png';
const photo = { type: 'photo', media: url };

onSharedService(async (running) => {
  service = running;
  owner = await service.newUser('olga');
  bot = await service.newBot(owner, 'news');
  const body = { type: 'channel', title: 'News' };
  chat_id = (await resultOf(service.app(owner, 'POST', '/api/chats', body))).id;
  const rights = { can_post_messages: true };
  const member = { status: 'administrator', rights };
  await resultOf(service.app(owner, 'PUT', `/api/chats/${chat_id}/members/${bot.id}`, member));
});

const create = (given: object) => service.bot(bot, 'createPost', { chat_id, ...given });
const edit = async (post_id: number, given: object) => {
  await sleep(limits.edit_interval_ms_min);
  return service.bot(bot, 'editPost', { post_id, ...given });
};
const refused = async (answer: ReturnType<typeof create>) => {
  const { status, body } = await answer;
  return [status, body.description];
};

test('a post shows media with a caption from the media object or from a parameter', async () => {
  const bold = [{ type: 'bold', offset: 0, length: 2 }];
  for (const given of [
    { media: { ...photo, caption: '<b>hi</b>', parse_mode: 'HTML' }, caption: 'not this', text: 'nor this' },
    { media: { ...photo, caption: '<b>hi</b>' }, parse_mode: 'HTML' },
    { media: photo, caption: '<b>hi</b>', parse_mode: 'HTML', text: 'not this' },
    { media: photo, caption: 'hi', caption_entities: bold },
    { media: photo, text: '<b>hi</b>', parse_mode: 'HTML' },
    { media: photo, text: 'hi', entities: bold },
  ]) {
    const made = await resultOf(create(given));
    expect(made).toMatchObject({ caption: 'hi', entities: bold, media: { type: 'photo' }, reactions: [] });
    expect(made.text).toBeUndefined();
    expect(await resultOf(service.bot(bot, 'getPost', { post_id: made.id }))).toEqual(made);
  }
  const bare = await resultOf(create({ media: photo }));
  expect(bare.media.type).toBe('photo');
  expect(bare).not.toHaveProperty('caption');
});

test('a post shows whether its media is behind a spoiler and whether its caption is above the media', async () => {
  const body = { chat_id, photo: url, caption: 'hi', has_spoiler: true, show_caption_above_media: true };
  const { message_id } = await resultOf(service.bot(bot, 'sendPhoto', body));
  const { items } = await resultOf(service.app(owner, 'GET', `/api/chats/${chat_id}/posts`));
  const looks = { has_media_spoiler: true, show_caption_above_media: true };
  expect(items[0]).toMatchObject({ message_id, caption: 'hi', ...looks });
  expect(await resultOf(create({ media: { ...photo, has_spoiler: true } }))).toMatchObject({
    has_media_spoiler: true,
  });
});

test('createPost accepts media by upload or by file_id', async () => {
  const made = await resultOf(
    upload(`${service.fronts[0]?.url}/bot${bot.token}/createPost`, [
      field('chat_id', String(chat_id)),
      field('media', JSON.stringify({ type: 'photo', media: 'attach://picture', caption: 'seen' })),
      {
        head: 'Content-Disposition: form-data; name="picture"; filename="a.png"\r\nContent-Type: image/png',
        body: png(30, 20),
      },
    ]),
  );
  expect(made).toMatchObject({ caption: 'seen', media: { type: 'photo', width: 30, height: 20 } });
  const again = await resultOf(create({ media: { type: 'photo', media: made.media.file_id } }));
  expect(again.media).toMatchObject({ file_unique_id: made.media.file_unique_id, width: 30 });
});

test('editPost keeps the fields that the call does not change', async () => {
  const reply_markup = { inline_keyboard: [[{ text: 'b', callback_data: 'd' }]] };
  const { id, media } = await resultOf(create({ media: { ...photo, caption: 'one' } }));
  const second = await resultOf(edit(id, { caption: 'two', reply_markup }));
  expect(second).toMatchObject({ id, caption: 'two', media, reply_markup });
  const third = await resultOf(edit(id, { caption: '' }));
  expect(third).not.toHaveProperty('caption');
  expect(third).not.toHaveProperty('reply_markup');
  expect(third.media).toEqual(media);
  const fourth = await resultOf(
    edit(id, { media: { type: 'video', media: 'https://example.com/b.mp4' }, caption: 'three' }),
  );
  expect(fourth).toMatchObject({ id, caption: 'three', media: { type: 'video' } });
  const fifth = await resultOf(edit(id, { reply_markup }));
  expect(fifth).toMatchObject({ caption: 'three', media: fourth.media, reply_markup });
});

test('createPost and editPost refuse invalid texts, invalid media, and edits that do not match the content of the post', async () => {
  const bad = (what: string) => [400, `Bad Request: ${what}`];
  expect(await refused(create({}))).toEqual(bad('message text is empty'));
  expect(await refused(create({ caption: 'of nothing' }))).toEqual(bad('message text is empty'));
  const long = 'x'.repeat(limits.caption_length_max + 1);
  for (const given of [{ text: long }, { caption: long }])
    expect(await refused(create({ media: photo, ...given }))).toEqual(bad('message caption is too long'));
  expect((await create({ media: { type: 'photo', media: 'http://example.com/a.png' } })).status).toBe(400);
  expect((await create({ media: { type: 'poll', media: url } })).status).toBe(400);
  const shown = await resultOf(create({ media: photo }));
  expect(await refused(edit(shown.id, { text: 'a text' }))).toEqual(
    bad('there is no text in the message to edit'),
  );
  const written = await resultOf(create({ text: 'a text' }));
  expect(await refused(edit(written.id, { caption: 'a caption' }))).toEqual(
    bad('there is no caption in the message to edit'),
  );
  expect(await refused(edit(written.id, { media: photo }))).toEqual(bad("message media can't be edited"));
  expect(await refused(edit(written.id, {}))).toEqual(bad('message text is empty'));
});

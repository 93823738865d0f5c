import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { mp4, png, wav } from '../support/samples.js';
import type { MediaKind } from './library.js';
import { badRequest, type Json, type Place, type Step } from './step.js';

const samples: Readonly<Record<MediaKind, { readonly bytes: Buffer; readonly filename: string }>> = {
  photo: { bytes: png(64, 48), filename: 'p.png' },
  video: { bytes: mp4(320, 240, 3), filename: 'v.mp4' },
  audio: { bytes: wav(2), filename: 'a.wav' },
  document: { bytes: Buffer.from('some words'), filename: 'größe 1.txt' },
  animation: { bytes: mp4(32, 24, 1), filename: 'g.mp4' },
  voice: { bytes: wav(1), filename: 'o.wav' },
};
const kinds = Object.keys(samples) as MediaKind[];

/** Returns the file of a message. For a photo, returns its largest size. */
const fileOf = (message: Json, kind: MediaKind): Json => [message[kind]].flat().at(-1);

/** Makes a stream of several pieces, whose total length is not known in advance. */
const streamOf = (bytes: Buffer) =>
  Readable.from([
    bytes.subarray(0, 3),
    bytes.subarray(3, bytes.length - 2),
    bytes.subarray(bytes.length - 2),
  ]);

const sending = (kind: MediaKind): Step => ({
  name: `a bot sends ${kind} by upload, stream, file_id and URL, and downloads it`,
  async run({ user, made, bot, shown }) {
    const { calls } = bot;
    const { bytes, filename } = samples[kind];
    const caption = { caption: '_hi_', parse_mode: 'MarkdownV2' };
    const sent = await calls.sendMedia(kind, user.id, { source: bytes, filename }, caption);
    expect(sent).toMatchObject({
      caption: 'hi',
      caption_entities: [{ type: 'italic', offset: 0, length: 2 }],
    });
    const file = fileOf(sent, kind);
    expect(file).toMatchObject({
      file_id: expect.any(String),
      file_unique_id: expect.any(String),
      file_size: bytes.length,
    });
    if (kind === 'document') expect(file.file_name).toBe(filename);
    expect(await calls.getFile(file.file_id)).toEqual({
      file_id: file.file_id,
      file_unique_id: file.file_unique_id,
      file_size: bytes.length,
      file_path: expect.any(String),
    });
    expect(await calls.download(file.file_id)).toEqual(bytes);

    const streamed = await calls.sendMedia(kind, user.id, { source: streamOf(bytes), filename });
    expect(fileOf(streamed, kind)).toMatchObject({ file_size: bytes.length });
    expect(await calls.download(fileOf(streamed, kind).file_id)).toEqual(bytes);

    const again = await calls.sendMedia(kind, user.id, file.file_id);
    expect(fileOf(again, kind)).toEqual(file);
    const url = `https://example.org/${kind}.bin?a=1&b=2`;
    const linked = await calls.sendMedia(kind, user.id, url);
    expect(fileOf(linked, kind).file_id).not.toBe(file.file_id);
    expect(JSON.stringify(await shown(made.id, linked.message_id))).toContain(url);

    const foreign = kinds.find((other) => other !== kind) as MediaKind;
    const mixed = await bot.refusal(calls.sendMedia(foreign, user.id, file.file_id));
    expect(mixed).toMatchObject({ error_code: 400 });
    expect(mixed.description).toMatch(/^Bad Request: can't use file of type \w+ as \w+$/);
    expect((await bot.refusal(calls.sendMedia(kind, user.id, 'no such file'))).description).toBe(
      'Bad Request: wrong file identifier/HTTP URL specified',
    );
  },
});

async function shorthand({ made, bot, picture, say, answered }: Place) {
  const asked = await say(made.id, '/photo of a square');
  const sent = await answered(made.id, asked.message_id);
  expect(sent).toMatchObject({ caption: 'of a square', photo: [{ file_size: picture.length }] });
  expect(await bot.calls.download(sent.photo[0].file_id)).toEqual(picture);
}

async function albums({ user, made, bot, picture, say, answered, shown }: Place) {
  const asked = await say(made.id, '/album');
  const second = await answered(made.id, asked.message_id, (message) => message.caption === undefined);
  const first = await shown(made.id, second.message_id - 1);
  expect(first).toMatchObject({ caption: 'one', media_group_id: second.media_group_id });
  expect(await bot.calls.download(first.photo[0].file_id)).toEqual(picture);

  const { photo, video } = samples;
  const known = second.photo[0].file_id;
  const sent = await bot.calls.sendMediaGroup(user.id, [
    {
      type: 'photo',
      media: { source: photo.bytes, filename: photo.filename },
      caption: 'a <b>b</b>',
      parse_mode: 'HTML',
    },
    { type: 'video', media: { source: streamOf(video.bytes), filename: video.filename } },
    { type: 'photo', media: known },
    { type: 'photo', media: 'https://example.org/p.png' },
  ]);
  const [a, b, c, d] = sent;
  expect(sent.map(({ message_id }: Json) => message_id - a.message_id)).toEqual([0, 1, 2, 3]);
  expect(new Set(sent.map(({ media_group_id }: Json) => media_group_id)).size).toBe(1);
  expect(a).toMatchObject({ caption: 'a b', caption_entities: [{ type: 'bold', offset: 2, length: 1 }] });
  expect(await bot.calls.download(a.photo[0].file_id)).toEqual(photo.bytes);
  expect(b.video).toMatchObject({ width: 320, height: 240, file_size: video.bytes.length });
  expect(c.photo[0].file_id).toBe(known);
  expect(d.photo[0]).toMatchObject({ width: 0, height: 0 });
  const document = { type: 'document', media: 'https://example.org/d' } as const;
  expect(
    await bot.refusal(bot.calls.sendMediaGroup(user.id, [document, { type: 'photo', media: known }])),
  ).toEqual(badRequest('sendMediaGroup', "Document can't be mixed with other media types"));
  expect((await bot.refusal(bot.calls.sendMediaGroup(user.id, [document]))).error_code).toBe(400);
}

async function edits({ user, made, bot, shown }: Place) {
  const { calls, refusal, patiently } = bot;
  const { photo, video } = samples;
  const { message_id: id } = await calls.sendMedia('photo', user.id, {
    source: photo.bytes,
    filename: photo.filename,
  });
  const captioned = await calls.editMessageCaption(user.id, id, '*strong* \\!', { parse_mode: 'MarkdownV2' });
  expect(captioned).toMatchObject({
    caption: 'strong !',
    caption_entities: [{ type: 'bold', offset: 0, length: 6 }],
    photo: [{ width: 64, height: 48 }],
  });
  const replaced = await patiently((patient) =>
    patient.editMessageMedia(user.id, id, {
      type: 'video',
      media: { source: video.bytes, filename: video.filename },
      caption: 'moving',
    }),
  );
  expect(replaced).toMatchObject({ message_id: id, caption: 'moving', video: { width: 320, duration: 3 } });
  expect([replaced.photo, replaced.caption_entities]).toEqual([undefined, undefined]);
  expect(await calls.download(replaced.video.file_id)).toEqual(video.bytes);
  const linked = await patiently((patient) =>
    patient.editMessageMedia(user.id, id, { type: 'photo', media: 'https://example.org/new.png' }),
  );
  expect(linked.caption).toBeUndefined();
  expect(await shown(made.id, id)).toMatchObject({
    photo: [expect.anything()],
    edit_date: expect.any(Number),
  });

  expect(await refusal(calls.editMessageText(user.id, id, 'words'))).toEqual(
    badRequest('editMessageText', 'there is no text in the message to edit'),
  );
  const { message_id: words } = await calls.sendMessage(user.id, 'words');
  expect(await refusal(calls.editMessageCaption(user.id, words, 'x'))).toEqual(
    badRequest('editMessageCaption', 'there is no caption in the message to edit'),
  );
  const url = { type: 'photo', media: 'https://example.org/x.png' } as const;
  expect(await refusal(calls.editMessageMedia(user.id, words, url))).toEqual(
    badRequest('editMessageMedia', "message media can't be edited"),
  );
}

async function captions({ user, bot, group, shown }: Place) {
  const sent = await bot.calls.sendMedia('photo', user.id, 'https://example.org/p.png', { caption: 'first' });
  const copy = await bot.calls.copyMessage(group, user.id, sent.message_id, { caption: 'second' });
  expect(await shown(group, copy.message_id)).toMatchObject({
    caption: 'second',
    photo: [expect.anything()],
  });
  const forwarded = await bot.calls.forwardMessage(group, user.id, sent.message_id);
  expect(forwarded).toMatchObject({ caption: 'first', photo: sent.photo });
}

export const mediaSteps: readonly Step[] = [
  ...kinds.map(sending),
  { name: 'a bot replies with a picture by the shorthand method of its context', run: shorthand },
  { name: 'a bot sends albums of uploads, file_ids and URLs', run: albums },
  { name: 'a bot edits captions and media', run: edits },
  { name: 'copies and forwards have the right captions', run: captions },
];

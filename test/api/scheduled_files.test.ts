/** Tests scheduled posts with a file (decision 0087). */
import { beforeEach, expect, test } from 'vitest';
import { unpack } from '../../src/store/core/codec.js';
import { ask } from '../support/postgres_pair.js';
import { mp4, png } from '../support/samples.js';
import { type Answer, itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let ann: TestUser;
let ben: TestUser;
let channel: number;

onSharedService((running) => {
  service = running;
});
beforeEach(async () => {
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  channel = (await ok(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' })).id;
});

const app = (who: TestUser, verb: string, path: string, body?: object) => service.app(who, verb, path, body);
const ok = (who: TestUser, verb: string, path: string, body?: object) => resultOf(app(who, verb, path, body));
const at = () => `/api/chats/${channel}/scheduled_posts`;
const soon = () => Math.floor(Date.now() / 1_000) + 3_600;

type Part = readonly [bytes: Buffer, filename: string, type: string];
const photo: Part = [png(40, 20), 'a.png', 'image/png'];
const paper: Part = [Buffer.from('plain text'), 'paper.txt', 'text/plain'];

async function send(
  parts: Readonly<Record<string, Part>>,
  fields: Readonly<Record<string, unknown>> = {},
  { by = ann, key = '' } = {},
): Promise<Pick<Answer, 'status' | 'body'>> {
  const form = new FormData();
  for (const [name, value] of Object.entries({ publish_at: soon(), ...fields }))
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  for (const [name, [bytes, filename, type]] of Object.entries(parts))
    form.set(name, new Blob([new Uint8Array(bytes)], { type }), filename);
  const headers = { authorization: `Bearer ${by.token}`, ...(key && { 'idempotency-key': key }) };
  const answer = await fetch(service.fronts[0]?.url + at(), { method: 'POST', headers, body: form });
  return { status: answer.status, body: (await answer.json()) as Answer['body'] };
}
const schedule = async (...given: Parameters<typeof send>) => {
  const { status, body } = await send(...given);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body.result;
};
const refusal = async (answer: Promise<Pick<Answer, 'status' | 'body'>>) => {
  const { status, body } = await answer;
  return [status, body.description];
};
const listed = (who = ann) => itemsOf(app(who, 'GET', at()));
const messages = () => itemsOf(app(ann, 'GET', `/api/chats/${channel}/messages`));
const fetchFile = (path: string, who = ann) =>
  fetch(service.fronts[0]?.url + path, { headers: { authorization: `Bearer ${who.token}` } });
const download = (id: number, who = ann) => fetchFile(`${at()}/${id}/file`, who);
const storedBytes = async (who = ann) => (await ok(who, 'GET', '/api/me/uploads')).bytes;
const makeAuthor = (status = 'administrator') =>
  ok(ann, 'PUT', `/api/chats/${channel}/members/${ben.id}`, {
    status,
    ...(status === 'administrator' && { rights: { can_post_messages: true } }),
  });

const sql = (text: string, ...values: unknown[]) => ask<Answer['body']>(service.databaseUrl, text, values);
const makeDue = (id: number) =>
  sql("update scheduled_posts set publish_at = now() - interval '1 s', next_at = now() where id = $1", id);
const keysOf = async (id: number): Promise<string[]> =>
  (await sql('select files from scheduled_posts where id = $1', id))[0]?.files;
/** Returns which of the given files are marked for removal. */
const unused = async (keys: readonly string[]): Promise<string[]> =>
  (await sql('select key from unused_files where key = any($1::text[])', keys)).map(({ key }) => key);

test('a photo is scheduled with a caption, shown to its author only, and published', async () => {
  const entities = [{ type: 'bold', offset: 0, length: 5 }];
  const publish_at = soon();
  const post = await schedule({ photo }, { text: 'First snow', entities, publish_at });
  const media = { type: 'photo', mime_type: 'image/png', width: 40, height: 20 };
  expect(post).toEqual({
    id: post.id,
    chat_id: channel,
    text: 'First snow',
    entities,
    media: { ...media, file_size: expect.any(Number) },
    publish_at,
  });
  expect(await listed()).toEqual([post]);
  const file = await download(post.id);
  expect(file.headers.get('content-type')).toBe('image/png');
  expect((await file.arrayBuffer()).byteLength).toBe(post.media.file_size);
  expect((await download(post.id, ben)).status).toBe(404);
  const keys = await keysOf(post.id);
  expect(keys).toHaveLength(1);
  await makeDue(post.id);
  await expect.poll(() => messages()).toHaveLength(1);
  const [message] = await messages();
  expect(message).toMatchObject({
    caption: 'First snow',
    caption_entities: entities,
    photo: [{ width: 40 }],
  });
  await expect.poll(() => listed()).toEqual([]);
  expect(await unused(keys)).toEqual([]);
  const { file_id } = message.photo[0];
  expect((await fetchFile(`/api/files/${file_id}`)).status).toBe(200);
});

test('a post scheduled without a caption keeps its file when its time changes or a caption is added', async () => {
  const options = { has_spoiler: true, show_caption_above_media: true };
  const post = await schedule({ document: paper }, options);
  const media = { type: 'document', file_name: 'paper.txt', mime_type: 'text/plain', file_size: 10 };
  expect(post).toMatchObject({ text: '', media });
  const path = `${at()}/${post.id}`;
  expect(await ok(ann, 'PATCH', path, { publish_at: soon() + 60 })).toMatchObject({ text: '', media });
  expect(await ok(ann, 'PATCH', path, { text: 'Read this' })).toMatchObject({ text: 'Read this', media });
  const tooLong = [400, 'Bad Request: message caption is too long'];
  expect(await refusal(app(ann, 'PATCH', path, { text: 'x'.repeat(1_025) }))).toEqual(tooLong);
  expect(await ok(ann, 'PATCH', path, { text: '' })).toMatchObject({ text: '', media });
  await ok(ann, 'PATCH', path, { text: 'Read it' });
  expect(await ok(ann, 'POST', `${path}/publish`)).toMatchObject({
    caption: 'Read it',
    document: { file_name: 'paper.txt' },
  });
});

test('deleting a scheduled post marks its file for removal', async () => {
  const post = await schedule({ photo });
  const keys = await keysOf(post.id);
  await ok(ann, 'DELETE', `${at()}/${post.id}`);
  expect(await unused(keys)).toEqual(keys);
  expect((await download(post.id)).status).toBe(404);
});

test('if a post is refused, its file is not stored', async () => {
  await ok(ben, 'POST', `/api/chats/${channel}/join`);
  expect(await refusal(send({ photo }, {}, { by: ben }))).toEqual([
    400,
    'Bad Request: need administrator rights in the channel chat',
  ]);
  expect((await refusal(send({ photo }, { publish_at: 1 })))[0]).toBe(400);
  expect((await refusal(send({ photo, document: paper })))[0]).toBe(400);
  expect((await refusal(send({ photo: paper })))[0]).toBe(400);
  const note: Part = [mp4(240, 240, 1), 'a.mp4', 'video/mp4'];
  expect((await refusal(send({ video_note: note }, { text: 'x' })))[0]).toBe(400);
  expect((await refusal(send({ photo }, { text: 'x'.repeat(1_025) })))[0]).toBe(400);
  expect(await refusal(send({}, { text: ' ' }))).toEqual([400, 'Bad Request: message text is empty']);
  const sent = await ok(ann, 'POST', `/api/chats/${channel}/messages`, { photo: 'https://a.example/a.png' });
  for (const given of ['https://a.example/a.png', sent.photo[0].file_id])
    expect((await refusal(send({}, { photo: given })))[0]).toBe(400);
  expect([await storedBytes(), await storedBytes(ben)]).toEqual([0, 0]);
  expect(await listed()).toEqual([]);
});

test('if a call is repeated with its idempotency key, its file is stored once', async () => {
  const [given, options] = [{ text: 'Once', publish_at: soon() }, { key: 'one post' }];
  const post = await schedule({ photo }, given, options);
  const bytes = await storedBytes();
  expect(await schedule({ photo }, given, options)).toEqual(post);
  expect([await storedBytes(), await listed()]).toEqual([bytes, [post]]);
});

test('a post that could not be published keeps its file for the next attempt', async () => {
  await ok(ben, 'POST', `/api/chats/${channel}/join`);
  await makeAuthor();
  const { id } = await schedule({ photo }, { text: 'By Ben' }, { by: ben });
  const keys = await keysOf(id);
  await makeAuthor('member');
  await makeDue(id);
  await expect.poll(async () => (await listed(ben))[0]?.failure).toBeDefined();
  expect([await keysOf(id), await unused(keys)]).toEqual([keys, []]);
  await makeAuthor();
  await ok(ben, 'PATCH', `${at()}/${id}`, { publish_at: soon() });
  await makeDue(id);
  await expect.poll(async () => (await messages())[0]?.caption).toBe('By Ben');
});

test('deleting a scheduled post keeps its file if the post may already have been published', async () => {
  const { id } = await schedule({ photo });
  const keys = await keysOf(id);
  await sql(
    "update scheduled_posts set tried_at = now() - interval '24 h', next_at = now() where id = $1",
    id,
  );
  await expect.poll(async () => (await listed())[0]?.failure).toBeDefined();
  await ok(ann, 'DELETE', `${at()}/${id}`);
  expect(await unused(keys)).toEqual([]);
});

test('deleting an account marks the files of scheduled posts for removal, except for a post that is being published', async () => {
  const [first, second] = [await schedule({ photo }), await schedule({ document: paper })];
  const [kept, released] = [await keysOf(first.id), await keysOf(second.id)];
  await sql(
    "update scheduled_posts set tried_at = now(), next_at = now() + interval '1 h' where id = $1",
    first.id,
  );
  await ok(ann, 'DELETE', '/api/me', { confirm: true });
  expect(await sql('select 1 from scheduled_posts where user_id = $1', ann.id)).toEqual([]);
  expect(await unused([...kept, ...released])).toEqual(released);
});

test('an earlier release of Petrel finds no text in a scheduled post with a file', async () => {
  const { id } = await schedule({ photo }, { text: 'A caption' });
  const [{ content }] = await sql('select content from scheduled_posts where id = $1', id);
  expect(unpack<{ text?: string }>(content).text).toBeUndefined();
});

/** Tests the formatting entities in messages that people send and edit (behaviour §4). */
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let [ann, bob, eve] = [] as unknown as [TestUser, TestUser, TestUser];
let bot: TestBot;
let path: string;

onSharedService(async (running) => {
  service = running;
  const names = ['ann', 'bob', 'eve'];
  const people = await Promise.all(names.map((name) => service.newUser(name)));
  [ann, bob, eve] = people as [TestUser, TestUser, TestUser];
  bot = await service.newBot(ann, 'format');
  path = `/api/chats/${await service.newGroup(ann, 'Formats', [bob, bot])}/messages`;
});

const send = (body: object) => service.app(ann, 'POST', path, body, 1);
const edit = (id: number, body: object) => service.app(ann, 'PATCH', `${path}/${id}`, body, 1);
const bold = { type: 'bold', offset: 0, length: 1 };

const formatted = {
  text: 'bold italic underline strike spoiler code pre quote link user',
  entities: [
    { type: 'bold', offset: 0, length: 4 },
    { type: 'italic', offset: 5, length: 6 },
    { type: 'underline', offset: 12, length: 9 },
    { type: 'strikethrough', offset: 22, length: 6 },
    { type: 'spoiler', offset: 29, length: 7 },
    { type: 'code', offset: 37, length: 4 },
    { type: 'pre', offset: 42, length: 3, language: 'ts' },
    { type: 'blockquote', offset: 46, length: 5 },
    { type: 'text_link', offset: 52, length: 4, url: 'https://example.org/' },
  ],
};

test('a bot receives the entities of a message that a person sends or edits', async () => {
  const { message_id } = await resultOf(send(formatted));
  await resultOf(edit(message_id, { text: 'x', entities: [bold] }));
  const updates = async () => {
    const all: ReadonlyArray<Record<string, { message_id: number }>> = await resultOf(
      service.bot(bot, 'getUpdates'),
    );
    return all
      .map(({ message, edited_message }) => message ?? edited_message)
      .filter((one) => one?.message_id === message_id);
  };
  await expect.poll(async () => (await updates()).length).toBe(2);
  const edited = { text: 'x', entities: [bold] };
  expect(await updates()).toMatchObject([formatted, edited]);
});

test('an edit without entities removes the entities of the old text, but hashtags are still found', async () => {
  const { message_id } = await resultOf(send({ text: 'see #a', entities: [bold] }));
  const edited = await resultOf(edit(message_id, { text: 'see #a' }));
  expect(edited.entities).toEqual([{ type: 'hashtag', offset: 4, length: 2 }]);
});

test('entities are ignored if a parse mode is given, and an empty list counts as no entities', async () => {
  const html = await resultOf(send({ text: 'a<i>b</i>', parse_mode: 'HTML', entities: [bold] }));
  expect(html.entities).toEqual([{ type: 'italic', offset: 1, length: 1 }]);
  expect((await resultOf(send({ text: 'ab', entities: [] }))).entities).toBeUndefined();
});

test('a caption sent as `caption` is formatted by caption_entities, and a caption sent as `text` by entities', async () => {
  const upload = async (fields: Record<string, string>) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    form.set('document', new Blob(['a']), 'a.txt');
    const headers = { authorization: `Bearer ${ann.token}` };
    const answer = await fetch(`${service.fronts[0].url}${path}`, { method: 'POST', headers, body: form });
    return ((await answer.json()) as { result: { message_id: number } }).result;
  };
  const entities = JSON.stringify([bold]);
  const wanted = { caption: 'ab', caption_entities: [bold] };
  expect(await upload({ text: 'ab', entities })).toMatchObject(wanted);
  const sent = await upload({ caption: 'ab', caption_entities: entities });
  expect(sent).toMatchObject(wanted);
  const italic = { type: 'italic', offset: 0, length: 2 };
  const edited = await resultOf(edit(sent.message_id, { caption: 'cd', caption_entities: [italic] }));
  expect(edited).toMatchObject({ caption: 'cd', caption_entities: [italic] });
});

test('a person mentions members by id, and a mention of a stranger has no effect', async () => {
  const mention = (id: number, offset: number) => ({
    ...{ type: 'text_mention', offset, length: 3, user: { id } },
  });
  const sent = await resultOf(send({ text: 'Bob Eve', entities: [mention(bob.id, 0), mention(eve.id, 4)] }));
  expect(sent.entities).toMatchObject([{ type: 'text_mention', offset: 0, user: { first_name: 'bob' } }]);
  expect(sent.entities).toHaveLength(1);
});

test('a message keeps its first 100 entities', async () => {
  const entities = Array.from({ length: limits.entities_max + 1 }, (_, i) => ({
    ...{ type: 'bold', offset: 2 * i, length: 1 },
  }));
  const sent = await resultOf(send({ text: 'a '.repeat(entities.length), entities }));
  expect(sent.entities).toEqual(entities.slice(0, limits.entities_max));
});

const badEntity = (reason: string) => `Bad Request: can't parse entities: ${reason}`;
const link = (offset: number) => ({
  ...{ type: 'text_link', offset, length: 1, url: `https://example.org/${'x'.repeat(2_000)}` },
});
const refusals: ReadonlyArray<readonly [string, unknown, string]> = [
  ['an unknown type', [{ ...bold, type: 'nonsense' }], badEntity('Unsupported type specified')],
  ['a negative offset', [{ ...bold, offset: -1 }], badEntity('Receive an entity with incorrect offset')],
  ['a negative length', [{ ...bold, length: -1 }], badEntity('Receive an entity with incorrect length')],
  [
    'a range beyond the text',
    [{ ...bold, length: 103 }],
    badEntity('Entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 102'),
  ],
  [
    'a range that cuts a character',
    [{ ...bold, offset: 101 }],
    badEntity('Entity begins in a middle of a UTF-16 symbol at byte offset 100'),
  ],
  [
    'a link without a URL',
    [{ ...bold, type: 'text_link' }],
    badEntity('Field "url" must be a non-empty string'),
  ],
  [
    'a mention of nobody',
    [{ ...bold, type: 'text_mention' }],
    badEntity('Field "user" must name a user by its identifier'),
  ],
  ['an item that is no entity', [7], 'Bad Request: parameter "entities.0" must be an array of entities'],
  [
    'links of 2,000 characters',
    Array.from({ length: 100 }, (_, i) => link(i)),
    'Bad Request: ENTITIES_TOO_LONG',
  ],
];

test.each(refusals)('entities with %s are refused, and nothing changes', async (_, entities, description) => {
  const text = `${'x'.repeat(100)}👋`;
  const { message_id } = await resultOf(send({ text: 'before' }));
  const refused = { status: 400, body: { ok: false, error_code: 400, description } };
  expect(await send({ text, entities })).toMatchObject(refused);
  expect(await edit(message_id, { text, entities })).toMatchObject(refused);
  const [newest] = await itemsOf(service.app(ann, 'GET', `${path}?limit=1`));
  expect(newest).toMatchObject({ message_id, text: 'before' });
});

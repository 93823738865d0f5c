import sharp from 'sharp';
import { expect, test } from 'vitest';
import type { Json, TestServer, World } from '../../src/testing/client.js';
import { call, onTestServer, runOn } from './server.js';

let server: TestServer;
onTestServer((started) => {
  server = started;
});

const bot = (world: World, method: string, params: object = {}) =>
  call(server.url, world.bot.token, method, params);
const updatesOf = async (world: World) => (await bot(world, 'getUpdates')).body.result;
const dot = async () =>
  new Uint8Array(
    await sharp({ create: { width: 1, height: 1, channels: 3, background: '#fff' } })
      .png()
      .toBuffer(),
  );
const request = async (verb: string, path: string, body?: object) => {
  const response = await fetch(server.url + path, {
    method: verb,
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
};

test('only the bot of a world gets the messages of the people in that world', async () => {
  const [one, two] = await Promise.all([server.world(), server.world()]);
  await one.person().send('hello');
  expect(await updatesOf(one)).toMatchObject([
    { message: { message_id: 1, text: 'hello', chat: { id: one.person().id } } },
  ]);
  expect(await updatesOf(two)).toEqual([]);
  const { body } = await bot(two, 'sendMessage', { chat_id: one.person().id, text: 'no' });
  expect(body).toMatchObject({ ok: false });
});

test('simulated people can start a bot, send, press buttons, join, react, leave and block', async () => {
  const world = await server.world({ people: ['ann', 'ben'], group: true, channel: true });
  const [ann, ben] = [world.person(), world.person('ben')];
  await ann.start('promo');
  const keyboard = { inline_keyboard: [[{ text: 'Yes', callback_data: 'yes' }]] };
  const sent = await bot(world, 'sendMessage', { chat_id: ann.id, text: '?', reply_markup: keyboard });
  await ann.press(sent.body.result.message_id, 'yes');
  await ben.join('group');
  await ben.send('hi all', { chat: 'group' });
  await ben.leave('group');
  await expect(ben.send('outside', { chat: 'group' })).rejects.toMatchObject({ status: 403 });
  const { body: post } = await bot(world, 'sendMessage', { chat_id: world.chats.channel, text: 'news' });
  await ben.react(post.result.message_id, '👍');
  await expect(ben.react(post.result.message_id + 1, '👍')).rejects.toMatchObject({ status: 404 });
  await ann.block();
  const refused = await bot(world, 'sendMessage', { chat_id: ann.id, text: 'still there?' });
  expect(refused.status).toBe(403);
  await ann.unblock();
  expect((await bot(world, 'sendMessage', { chat_id: ann.id, text: 'again' })).status).toBe(200);
  const updates = await updatesOf(world);
  const shown = JSON.stringify(updates);
  for (const text of ['/start promo', '"data":"yes"', 'hi all', '"status":"kicked"'])
    expect(shown).toContain(text);
  const actions = await world.recording({ kind: 'action' });
  expect(actions.map(({ person, name, status }) => `${person} ${name} ${status}`)).toEqual([
    ...['ann start 200', 'ann press 200', 'ben join 200', 'ben send 200', 'ben leave 200'],
    ...['ben send 403', 'ben react 200', 'ann block 200', 'ann unblock 200'],
  ]);
});

test('simulated people can send locations, contacts and files, edit and delete messages, and vote', async () => {
  const world = await server.world({ people: ['ann'], group: true });
  const ann = world.person();
  await ann.sendObject({ location: { latitude: 52.5, longitude: 13.4 } });
  await ann.sendObject({ contact: { phone_number: '+4930123', first_name: 'Ben' } });
  await ann.sendFile('document', 'plan.txt', 'one, two', { caption: 'the plan' });
  await ann.sendFile('photo', 'dot.png', await dot(), { chat: 'group' });
  const group = world.chats.group as number;
  const { message_id } = await ann.send('tpyo', { chat: group });
  await ann.edit(message_id, 'typo', { chat: 'group' });
  await ann.send('a reply', { chat: 'group', reply_to_message_id: message_id });
  await ann.delete(message_id, { chat: 'group' });
  await expect(ann.edit(message_id, 'gone', { chat: 'group' })).rejects.toMatchObject({ status: 404 });
  const poll = { chat_id: group, question: 'Tea?', options: ['yes', 'no'], is_anonymous: false };
  const sent = await bot(world, 'sendPoll', { ...poll, allows_multiple_answers: true });
  for (const options of [[0, 1], []]) await ann.vote(sent.body.result.message_id, options, { chat: 'group' });
  const shown = async () =>
    ((await updatesOf(world)) as Json[])
      .map(
        ({ message: m, edited_message: edited, poll_answer: vote }) =>
          m?.location?.latitude ??
          m?.contact?.phone_number ??
          m?.caption ??
          m?.photo?.[0].width ??
          m?.reply_to_message?.message_id ??
          m?.text ??
          edited?.text ??
          vote?.option_ids,
      )
      .filter((each) => each !== undefined);
  const texts = ['tpyo', 'typo', message_id];
  await expect.poll(shown).toEqual([52.5, '+4930123', 'the plan', 1, ...texts, [0, 1], []]);
  const [file] = await world
    .recording({ kind: 'action', name: 'send', after: 0 })
    .then((all) => all.slice(2));
  expect(file?.params).toEqual({ document: { filename: 'plan.txt', bytes: 8 }, caption: 'the plan' });
});

test('simulated people can stop drafts and choose results of inline queries', async () => {
  const world = await server.world({ inline: true });
  const ann = world.person();
  await bot(world, 'sendMessageDraft', { chat_id: ann.id, draft_id: 7, text: 'so', can_stop: true });
  await ann.stopDraft(7);
  const asking = ann.inlineQuery('te', { offset: '20' });
  await expect
    .poll(async () => JSON.stringify(await updatesOf(world)))
    .toContain('"query":"te","offset":"20"');
  const updates = await updatesOf(world);
  const { id } = updates.find((update: Json) => update.inline_query).inline_query;
  const tea = { type: 'article', id: 'tea', title: 'Tea', input_message_content: { message_text: 'Tea!' } };
  await bot(world, 'answerInlineQuery', { inline_query_id: id, results: [tea] });
  const { inline_query_id } = await asking;
  expect((await ann.choose(inline_query_id, 'tea')).text).toBe('Tea!');
  const shown = JSON.stringify(await updatesOf(world));
  expect(shown).toContain('"stopped_message_generation"');
  await expect.poll(async () => JSON.stringify(await updatesOf(world))).toContain('"chosen_inline_result"');
});

test('an action returns the error of the application API, and is recorded', async () => {
  const world = await server.world();
  const path = `/api/test/worlds/${world.id}/people`;
  expect(await request('POST', `${path}/ann/send`, { text: '' })).toMatchObject({
    status: 400,
    body: { ok: false, description: 'Bad Request: message text is empty' },
  });
  expect(await world.recording()).toMatchObject([{ kind: 'action', name: 'send', status: 400 }]);
  expect((await request('POST', `${path}/eve/send`, { text: 'x' })).status).toBe(404);
  expect((await request('POST', `${path}/ann/fly`, {})).status).toBe(404);
  expect((await request('POST', `${path}/ann/press`, { message_id: 'x', data: 'y' })).status).toBe(400);
  await expect(world.person().join('group')).rejects.toThrow('chat not found');
});

test('a recording has the calls of the bot with parameters and answers, but without tokens', async () => {
  const world = await server.world();
  const { token } = world.bot;
  await bot(world, 'SENDMESSAGE', { chat_id: world.person().id, text: `my token is ${token}` });
  await bot(world, 'setWebhook', { url: '', secret_token: 'hidden-secret' });
  await bot(world, 'sendMessage', { chat_id: 1, text: 'x' });
  await call(server.url, token.slice(0, -1), 'getMe');
  const calls = await world.calls();
  expect(calls).toMatchObject([
    { name: 'sendMessage', status: 200, answer: { ok: true, result: { message_id: 1 } } },
    { name: 'setWebhook', params: { url: '' } },
    { name: 'sendMessage', params: { chat_id: 1 }, status: 400, answer: { ok: false } },
  ]);
  const text = JSON.stringify(calls);
  expect(text).not.toContain(token.slice(-30));
  expect(text).not.toContain('hidden-secret');
});

test('a request for a recording waits for the expected calls of the bot', async () => {
  const world = await server.world();
  const waiting = world.waitForCalls('sendMessage', { count: 2 });
  for (const text of ['one', 'two']) await bot(world, 'sendMessage', { chat_id: world.person().id, text });
  expect((await waiting).map(({ params }) => params.text)).toEqual(['one', 'two']);
  const late = world.waitForCalls('deleteMessage', { timeoutMs: 20 });
  await expect(late).rejects.toThrow('made 0 calls of deleteMessage within 20 ms instead of 1');
});

test('a recording contains values of up to 64 KB, and a saved recording contains all pages', async () => {
  const world = await server.world();
  await bot(world, 'sendMessage', { chat_id: 1, text: 'x'.repeat(70_000) });
  // No rate limit applies unless it is set.
  const send = (n: number) => bot(world, 'sendMessage', { chat_id: world.person().id, text: `${n}` });
  for (let n = 0; n < 1_010; n += 10) await Promise.all(Array.from({ length: 10 }, (_, i) => send(n + i)));
  const { entries } = await world.save();
  expect(entries).toHaveLength(1_011);
  expect(entries[0]?.params).toEqual({ omitted_bytes: expect.any(Number) });
  expect(entries.slice(1).every(({ status }) => status === 200)).toBe(true);
  expect(await world.recording()).toEqual(entries.slice(0, 1_000));
});

test('the request for a world determines its people, chats and inline mode', async () => {
  const forms = [{}, { people: ['bea'] }, { group: true }, { channel: true }, { inline: true }];
  const worlds = await Promise.all(forms.map((form) => server.world(form)));
  const made = worlds.map(async (world) => {
    const { supports_inline_queries } = (await bot(world, 'getMe')).body.result;
    return [world.people.map(({ name }) => name).join(), Object.keys(world.chats), supports_inline_queries];
  });
  expect(await Promise.all(made)).toEqual([
    ['ann', [], false],
    ['bea', [], false],
    ['ann', ['group'], false],
    ['ann', ['channel'], false],
    ['ann', [], true],
  ]);
});

test('the tokens of a removed world are refused', async () => {
  const world = await server.world();
  const me = () =>
    fetch(`${server.url}/api/me`, { headers: { Authorization: `Bearer ${world.person().token}` } });
  expect((await me()).status).toBe(200);
  await world.remove();
  expect((await me()).status).toBe(401);
  expect((await bot(world, 'getMe')).status).toBe(401);
  await expect(world.recording()).rejects.toThrow('Not Found');
  await expect(world.remove()).rejects.toThrow('Not Found');
});

test.each([
  [{ people: [] }],
  [{ people: ['a'] }],
  [{ people: ['ann', 'ann'] }],
  [{ people: 'ann' }],
  [{ people: Array.from({ length: 21 }, (_, i) => `p${'abcdefghijklmnopqrstu'[i]}`) }],
  [{ group: 'perhaps' }],
])('a world of %j is refused', async (form) => {
  expect((await request('POST', '/api/test/worlds', form)).status).toBe(400);
});

test('a second server on the same port does not start, and its error names the reason', async () => {
  const { port } = new URL(server.url);
  const { code, log } = await runOn(port);
  expect(code).toBe(1);
  expect(log).toContain(
    `the test server cannot listen on 127.0.0.1 port ${port}: the port is in use. Set PORT to another port`,
  );
  expect((await server.world()).people).toHaveLength(1);
});

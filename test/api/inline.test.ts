/**
 * Tests inline mode over two fronts: queries and answers, sent results, feedback to the bot, edits and button presses
 * of inline messages, forwards, export, and messages that only Postgres has.
 */
import { createHash, createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Eviction, openEviction } from '../interface/eviction.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let eviction: Eviction;
let ann: TestUser;
let ben: TestUser;
let bot: TestBot;
let other: TestBot;
let group: number;

// biome-ignore lint/suspicious/noExplicitAny: messages and updates of every shape
type Any = any;

onSharedService(async (running) => {
  service = running;
  eviction = await openEviction(service);
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  [bot, other] = [await service.newBot(ann, 'finder'), await service.newBot(ann, 'guest')];
  group = await service.newGroup(ann, 'Club', [ben, other]);
  await service.openChat(ann, other);
  await setMode(bot, { enabled: true, placeholder: ' Search  cats ', feedback: true });
});
afterAll(async () => {
  await eviction?.close();
});

const setMode = (of: TestBot, body: object, by = ann) =>
  service.app(by, 'PUT', `/api/me/bots/${of.id}/inline_mode`, body);
const bad = (text: string) => ({ ok: false, error_code: 400, description: `Bad Request: ${text}` });
const ask = (who: TestUser, query: string, { chat = group, front = 0, of = bot, offset = '' } = {}) =>
  service.app(who, 'POST', `/api/chats/${chat}/inline_query`, { bot_id: of.id, query, offset }, front);
const choose = (who: TestUser, answer: Any, result_id: string, { chat = group, front = 0, ...more } = {}) =>
  service.app(
    who,
    'POST',
    `/api/chats/${chat}/inline_result`,
    { inline_query_id: answer.inline_query_id, result_id, ...more },
    front,
  );
const article = (id: string, text = `text of ${id}`, more: object = {}) => ({
  ...{ type: 'article', id, title: `Title ${id}`, input_message_content: { message_text: text }, ...more },
});
const keyboard = { inline_keyboard: [[{ text: 'More', callback_data: 'more' }]] };
const answer = (query: Any, results: readonly object[], more: object = {}, by = bot, front = 0) =>
  service.bot(by, 'answerInlineQuery', { inline_query_id: query.id, results, cache_time: 0, ...more }, front);

/** Returns the bot's next update of the kind `field`. Confirms this update and all earlier updates. */
async function next(field: string, by = bot): Promise<Any> {
  for (;;) {
    const updates = await resultOf(service.bot(by, 'getUpdates', { limit: 100, timeout: 30 }));
    if (updates.length === 0) throw new Error(`no update ${field}`);
    const found = updates.find((update: Any) => update[field]);
    const last = (found ?? updates.at(-1)).update_id;
    await resultOf(service.bot(by, 'getUpdates', { offset: last + 1, limit: 1 }));
    if (found) return found[field];
  }
}

/** Drops the pending updates of a bot. */
async function drop(by: TestBot): Promise<void> {
  const [last] = await resultOf(service.bot(by, 'getUpdates', { offset: -1 }));
  if (last) await resultOf(service.bot(by, 'getUpdates', { offset: last.update_id + 1 }));
}

/** Sends an inline query as a person, and answers it as the bot. */
async function asked(who: TestUser, query: string, results: readonly object[], more: object = {}, at = {}) {
  const asking = ask(who, query, at);
  const question = await next('inline_query');
  await resultOf(answer(question, results, more));
  return { question, shown: await resultOf(asking) };
}

/**
 * Sends an inline message with a keyboard. Returns the message, and the `chosen_inline_result` that the bot received.
 */
async function sendInline(
  who = ann,
  chat = group,
  result: object = article('k', 'cat', { reply_markup: keyboard }),
) {
  const { shown } = await asked(who, `send ${chat} ${Math.random()}`, [result], {}, { chat });
  const message = await resultOf(choose(who, shown, (result as Any).id, { chat }));
  return { message, chosen: await next('chosen_inline_result') };
}

test('after the owner turns inline mode on, everybody sees the change', async () => {
  const settings = await resultOf(service.app(ann, 'GET', `/api/me/bots/${bot.id}`));
  expect(settings.inline_mode).toEqual({ placeholder: 'Search cats', feedback: true });
  expect((await resultOf(service.bot(bot, 'getMe', {}, 1))).supports_inline_queries).toBe(true);
  expect((await resultOf(service.bot(other, 'getMe'))).supports_inline_queries).toBe(false);
  const named = await resultOf(service.app(ben, 'GET', `/api/names/${bot.username}`));
  expect(named.inline_placeholder).toBe('Search cats');
  expect(
    'inline_placeholder' in (await resultOf(service.app(ben, 'GET', `/api/names/${other.username}`))),
  ).toBe(false);
});

test('after the owner turns inline mode off, all fronts refuse queries', async () => {
  const off = await service.newBot(ann, 'switch');
  for (const enabled of [true, false, true]) {
    await resultOf(setMode(off, { enabled }));
    for (const front of [0, 1]) {
      const me = await resultOf(service.bot(off, 'getMe', {}, front));
      expect(me.supports_inline_queries).toBe(enabled);
    }
  }
  expect((await setMode(off, { enabled: true }, ben)).body.error_code).toBe(403);
  const { items } = await resultOf(service.app(ann, 'GET', `/api/me/bots/${off.id}/audit?limit=1`));
  expect(items[0]).toMatchObject({
    event: 'inline_mode_changed',
    details: { enabled: true, feedback: false },
  });
  expect((await setMode(off, { enabled: true, placeholder: 'x'.repeat(65) })).body).toEqual(
    bad('input field placeholder is too long'),
  );
});

test('a bot gets a query without the id of the chat, and the person gets the answer on another front', async () => {
  const asking = ask(ben, 'cats', { front: 1 });
  const question = await next('inline_query');
  expect(question).toEqual({
    id: expect.stringMatching(/^\d+$/),
    from: expect.objectContaining({ id: ben.id, is_bot: false, first_name: 'ben' }),
    query: 'cats',
    offset: '',
    chat_type: 'group',
  });
  const results = [
    article('a', 'cat', { description: 'An animal', url: 'https://example.org/cat', reply_markup: keyboard }),
    {
      type: 'photo',
      id: 'p',
      photo_url: 'https://example.org/cat.jpg',
      thumbnail_url: 'https://example.org/small.jpg',
      photo_width: 640,
      photo_height: 480,
      caption: 'A *cat*',
      parse_mode: 'MarkdownV2',
    },
  ];
  const button = { text: 'Sign in', start_parameter: 'login' };
  await resultOf(answer(question, results, { next_offset: '2', button }));
  expect(await resultOf(asking)).toEqual({
    inline_query_id: expect.stringMatching(new RegExp(`^${question.id}-[\\w-]{22}$`)),
    results: [
      {
        id: 'a',
        type: 'article',
        title: 'Title a',
        description: 'An animal',
        url: 'https://example.org/cat',
      },
      {
        ...{ id: 'p', type: 'photo', thumbnail_url: 'https://example.org/small.jpg' },
        photo: [expect.objectContaining({ url: 'https://example.org/cat.jpg', width: 640, height: 480 })],
      },
    ],
    next_offset: '2',
    button,
  });
  const more = ask(ben, 'cats', { offset: '2' });
  expect((await next('inline_query')).offset).toBe('2');
  await more;
}, 60_000);

test.each([
  ['sender', () => bot.id],
  ['private', () => other.id],
  ['channel', () => channel],
])('a query tells the chat type %s', async (type, chatOf) => {
  await service.openChat(ann, bot);
  const asking = ask(ann, `in ${type}`, { chat: chatOf() });
  const question = await next('inline_query');
  expect(question.chat_type).toBe(type);
  await resultOf(answer(question, []));
  expect((await resultOf(asking)).results).toEqual([]);
});
let channel: number;
beforeAll(async () => {
  channel = (await resultOf(service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' }))).id;
});

test('the chosen result becomes a message from the person, `via_bot` names the bot, and the bot gets chosen_inline_result', async () => {
  await drop(other);
  const { shown } = await asked(ben, 'dogs', [
    article('d', '<b>dog</b>', {
      input_message_content: { message_text: '<b>dog</b>', parse_mode: 'HTML' },
      reply_markup: keyboard,
    }),
  ]);
  const sent = await resultOf(choose(ben, shown, 'd'));
  expect(sent).toMatchObject({
    from: { id: ben.id },
    via_bot: { id: bot.id, is_bot: true, username: bot.username },
    text: 'dog',
    entities: [{ type: 'bold', offset: 0, length: 3 }],
    reply_markup: keyboard,
  });
  const chosen = await next('chosen_inline_result');
  expect(chosen).toEqual({
    result_id: 'd',
    from: expect.objectContaining({ id: ben.id }),
    query: 'dogs',
    inline_message_id: expect.stringMatching(/^[\w-]{40,128}$/),
  });
  const seen = await next('message', other);
  expect(seen).toMatchObject({ message_id: sent.message_id, via_bot: { id: bot.id }, text: 'dog' });
  const [listed] = await itemsOf(service.app(ann, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(listed).toEqual(sent);
  // A message without a keyboard has no inline message id, because a bot never needs to change such a message.
  const without = await sendInline(ben, group, article('n'));
  expect('inline_message_id' in without.chosen).toBe(false);
});

test('a bot that has not enabled feedback is not told which of its results a person chose', async () => {
  const quiet = await service.newBot(ann, 'quiet');
  await resultOf(setMode(quiet, { enabled: true }));
  const asking = ask(ann, 'quiet', { of: quiet });
  await resultOf(answer(await next('inline_query', quiet), [article('q')], {}, quiet));
  await resultOf(choose(ann, await resultOf(asking), 'q'));
  expect(await resultOf(service.bot(quiet, 'getUpdates', { limit: 10 }))).toEqual([]);
});

test.each<[string, Any, Any]>([
  [
    'gif',
    { gif_url: 'https://example.org/c.gif', gif_duration: 2 },
    { animation: { duration: 2, mime_type: 'image/gif' } },
  ],
  ['mpeg4_gif', { mpeg4_url: 'https://example.org/c.mp4' }, { animation: { mime_type: 'video/mp4' } }],
  [
    'video',
    { video_url: 'https://example.org/c.mp4', mime_type: 'video/mp4', title: 'V', caption: 'see' },
    { video: { mime_type: 'video/mp4' }, caption: 'see' },
  ],
  [
    'audio',
    { audio_url: 'https://example.org/c.mp3', title: 'Song', performer: 'Cat', audio_duration: 9 },
    { audio: { title: 'Song', performer: 'Cat', duration: 9 } },
  ],
  ['voice', { voice_url: 'https://example.org/c.ogg', title: 'V' }, { voice: {} }],
  [
    'document',
    { document_url: 'https://example.org/c.pdf', mime_type: 'application/pdf', title: 'D' },
    { document: { mime_type: 'application/pdf' } },
  ],
  ['location', { latitude: 1.5, longitude: 2, title: 'L' }, { location: { latitude: 1.5, longitude: 2 } }],
  [
    'venue',
    { latitude: 1, longitude: 2, title: 'Inn', address: 'Road 1' },
    { venue: { title: 'Inn', address: 'Road 1' } },
  ],
  [
    'contact',
    { phone_number: '+1', first_name: 'Cat', last_name: 'Tom' },
    { contact: { phone_number: '+1', first_name: 'Cat', last_name: 'Tom' } },
  ],
  [
    'photo',
    { photo_url: 'https://example.org/c.jpg', input_message_content: { latitude: 3, longitude: 4 } },
    { location: { latitude: 3, longitude: 4 } },
  ],
  [
    'video',
    {
      ...{ video_url: 'https://example.org/page', mime_type: 'text/html', title: 'Page' },
      input_message_content: { message_text: 'https://example.org/page' },
    },
    { text: 'https://example.org/page' },
  ],
])('a result of the type %s sends %j', async (type, given, sent) => {
  const { shown } = await asked(ann, `type ${type}`, [{ type, id: '1', ...given }]);
  expect(shown.results[0]).toMatchObject({ id: '1', type });
  const message = await resultOf(choose(ann, shown, '1'));
  expect(message).toMatchObject({ ...sent, via_bot: { id: bot.id } });
  await next('chosen_inline_result');
});

test('an inline result can send a stored file again by its file_id', async () => {
  await service.openChat(ann, bot);
  const photo = await resultOf(
    service.bot(bot, 'sendPhoto', { chat_id: ann.id, photo: 'https://example.org/x.jpg' }),
  );
  const { file_id } = photo.photo[0];
  const { shown } = await asked(ann, 'cached', [{ type: 'photo', id: '1', photo_file_id: file_id }]);
  expect((await resultOf(choose(ann, shown, '1'))).photo[0].file_id).toBe(file_id);
  const asking = ask(ann, 'wrong type');
  const question = await next('inline_query');
  expect((await answer(question, [{ type: 'voice', id: '1', voice_file_id: file_id }])).body.error_code).toBe(
    400,
  );
  await resultOf(answer(question, []));
  await asking;
});

describe('refused answers to inline queries', () => {
  let question: Any;
  let askedAt = Number.NEGATIVE_INFINITY;
  beforeEach(async () => {
    // A bot can answer a query only for 30 s.
    if (performance.now() - askedAt < 10_000) return;
    askedAt = performance.now();
    void ask(ann, 'refused');
    question = await next('inline_query');
  });

  test.each<[string, Any]>([
    ['too many inline query results specified', Array.from({ length: 51 }, (_, i) => article(`${i}`))],
    ["can't parse inline query result: ID is used twice", [article('1'), article('1')]],
    ["can't parse inline query result: ID must have 1 to 64 bytes", [article('')]],
    ["can't parse inline query result: ID must have 1 to 64 bytes", [article('é'.repeat(33))]],
    [
      'can\'t parse inline query result: type "sticker" is unsupported for the inline query result',
      [{ type: 'sticker', id: '1', sticker_file_id: 'x' }],
    ],
    ['parameter "input_message_content" is required', [{ type: 'article', id: '1', title: 'x' }]],
    ['parameter "title" is required', [{ ...article('1'), title: '' }]],
    ['parameter "photo_url" is required', [{ type: 'photo', id: '1' }]],
    ['parameter "results.0.id" is required', [{ type: 'article' }]],
    ['parameter "results" must be an array of inline query results', 'x'],
    [
      'wrong file identifier/HTTP URL specified',
      [{ type: 'photo', id: '1', photo_url: 'http://example.org/x.jpg' }],
    ],
    [
      'wrong file identifier/HTTP URL specified',
      [{ type: 'photo', id: '1', photo_url: 'attach://photo', photo: 'x' }],
    ],
    [
      'wrong file identifier/HTTP URL specified',
      [article('1', 'x', { thumbnail_url: 'javascript:alert(1)' })],
    ],
    [
      "can't parse inline query result: MIME type is unsupported",
      [{ type: 'document', id: '1', title: 'x', document_url: 'https://e.org/x', mime_type: 'text/plain' }],
    ],
    ["can't parse inline query result: URL is invalid", [article('1', 'x', { url: 'javascript:alert(1)' })]],
    ['message text is empty', [article('1', ' ')]],
    ['message is too long', [article('1', 'x'.repeat(4_097))]],
    [
      "can't parse inline query result: unsupported type of input message content",
      [{ ...article('1'), input_message_content: { title: 'x' } }],
    ],
    [
      'wrong live location period specified',
      [{ type: 'location', id: '1', latitude: 1, longitude: 1, live_period: 59 }],
    ],
    [
      'BUTTON_DATA_INVALID',
      [article('1', 'x', { reply_markup: { inline_keyboard: [[{ text: 'x', callback_data: '' }]] } })],
    ],
    [
      'inline query answer is too big',
      Array.from({ length: 50 }, (_, i) => article(`${i}`, 'ж'.repeat(4_096))),
    ],
  ])('with "%s"', async (why, results) => {
    expect((await answer(question, results)).body).toEqual(bad(why));
  });

  test.each<[string, object]>([
    ['NEXT_OFFSET_INVALID', { next_offset: 'é'.repeat(33) }],
    ["can't parse inline query results button: start_parameter is required", { button: { text: 'x' } }],
    [
      "can't parse inline query results button: text must have 1 to 256 characters",
      { button: { text: ' ', start_parameter: 'x' } },
    ],
  ])('with "%s"', async (why, more) => {
    expect((await answer(question, [], more)).body).toEqual(bad(why));
  });

  test('an inline query stays open if another bot answers it, and a second answer by the queried bot is refused', async () => {
    const tooOld = bad('query is too old and response timeout expired or query ID is invalid');
    // The person waits for the answer only for 7 s.
    const asking = ask(ann, 'open');
    const question = await next('inline_query');
    expect((await answer(question, [], {}, other)).body).toEqual(tooOld);
    await resultOf(answer(question, [article('1')]));
    expect((await resultOf(asking)).results).toHaveLength(1);
    expect((await answer(question, [article('2')])).body).toEqual(tooOld);
    expect((await answer({ id: '../x' }, [])).body).toEqual(tooOld);
  });
});

test('a person gets an error if the bot does not answer within seven seconds', async () => {
  const began = performance.now();
  expect((await ask(ann, 'silence')).body).toEqual(bad('BOT_RESPONSE_TIMEOUT'));
  expect(performance.now() - began).toBeGreaterThan(6_500);
  await drop(bot);
}, 40_000);

test('an inline query is refused in a chat to which the person does not belong, and for a bot without inline mode', async () => {
  const eve = await service.newUser('eve');
  expect((await ask(eve, 'x')).body.error_code).toBe(403);
  expect((await ask(ann, 'x', { of: other })).body).toEqual(bad('bot does not answer inline queries'));
  expect((await ask(ann, 'x', { chat: 123_456 })).body.error_code).toBe(404);
  expect((await ask(ann, 'x', { of: { ...bot, id: ben.id } })).body.error_code).toBe(404);
  expect((await ask(ann, 'x'.repeat(257))).body).toEqual(
    bad('parameter "query" must be a text of up to 256 characters'),
  );
});

test('a query is refused if the bot does not request inline queries', async () => {
  const deaf = await service.newBot(ann, 'deaf');
  await resultOf(setMode(deaf, { enabled: true }));
  await resultOf(service.bot(deaf, 'getUpdates', { allowed_updates: ['message'] }));
  expect((await ask(ann, 'x', { of: deaf })).body).toEqual(bad('bot does not answer inline queries'));
});

test('only people who may write to a bot can send inline queries to the bot', async () => {
  const closed = await service.newBot(ann, 'closed');
  await resultOf(setMode(closed, { enabled: true }));
  const setPolicy = (policy: string, usernames: readonly string[] = []) =>
    resultOf(service.app(ann, 'PUT', `/api/me/bots/${closed.id}/write_access`, { policy, usernames }));
  await setPolicy('owner');
  expect((await ask(ben, 'x', { of: closed })).body).toMatchObject({
    error_code: 403,
    description: "Forbidden: you can't write to this bot",
  });
  for (const [policy, who] of [
    ['owner', ann],
    ['selected', ben],
  ] as const) {
    await setPolicy(policy, [ben.username]);
    const asking = ask(who, `by ${who.first_name}`, { of: closed });
    await resultOf(answer(await next('inline_query', closed), [], {}, closed));
    expect((await resultOf(asking)).results).toEqual([]);
  }
});

describe('cached answers to inline queries', () => {
  const wide = { cache_time: 300 };

  test('a person who repeats the query of another person in the same type of chat gets the stored answer', async () => {
    const { question } = await asked(ann, 'wide', [article('w')], wide);
    const again = await resultOf(ask(ben, 'wide', { front: 1 }));
    expect(again.inline_query_id.split('-')[0]).toBe(question.id);
    expect((await resultOf(choose(ben, again, 'w'))).text).toBe('text of w');
    await next('chosen_inline_result');
    // A stored answer is reused only for queries with the same chat type and offset. This query has another chat type.
    const asking = ask(ann, 'wide', { chat: other.id });
    expect((await next('inline_query')).chat_type).toBe('private');
    await asking;
  }, 40_000);

  test('an answer marked as personal is reused only for the person who asked, and only this person may send its results', async () => {
    const { shown } = await asked(ann, 'personal', [article('p')], { ...wide, is_personal: true });
    expect((await resultOf(ask(ann, 'personal'))).inline_query_id).toBe(shown.inline_query_id);
    const asking = ask(ben, 'personal');
    const own = await next('inline_query');
    expect(own.from.id).toBe(ben.id);
    await resultOf(answer(own, [article('b')], { ...wide, is_personal: true }));
    expect((await resultOf(asking)).results[0].id).toBe('b');
    expect((await choose(ben, shown, 'p')).body).toEqual({
      ...{ ok: false, error_code: 404, description: 'Not Found: inline result not found' },
    });
    await resultOf(choose(ann, shown, 'p'));
  });

  test('an answer with a cache time of 0 is not stored for further queries', async () => {
    await asked(ann, 'fresh', [article('1')]);
    const { shown } = await asked(ann, 'fresh', [article('2')]);
    expect(shown.results[0].id).toBe('2');
    expect((await choose(ben, shown, '2')).status).toBe(404);
  });

  test('a person cannot choose a result that was shown only to other people', async () => {
    const { question, shown } = await asked(ann, 'guessed', [article('g')], wide);
    for (const inline_query_id of [question.id, shown.inline_query_id])
      expect((await choose(ben, { inline_query_id }, 'g')).status).toBe(404);
    await resultOf(choose(ann, shown, 'g'));
    await next('chosen_inline_result');
  });

  test('a person who may not write to the bot gets no cached answer', async () => {
    const closed = await service.newBot(ann, 'few');
    await resultOf(setMode(closed, { enabled: true }));
    const path = `/api/me/bots/${closed.id}/write_access`;
    await resultOf(service.app(ann, 'PUT', path, { policy: 'selected', usernames: [ann.username] }));
    const asking = ask(ann, 'secret', { of: closed });
    const question = await next('inline_query', closed);
    await resultOf(answer(question, [article('s')], wide, closed));
    const shown = await resultOf(asking);
    expect((await ask(ben, 'secret', { of: closed })).body.description).toBe(
      "Forbidden: you can't write to this bot",
    );
    expect(await resultOf(ask(ann, 'secret', { of: closed }))).toEqual(shown);
  });

  test('a result is not sent if its bot was deleted or has no inline mode any more', async () => {
    for (const end of ['off', 'deleted']) {
      const brief = await service.newBot(ann, 'brief');
      await resultOf(setMode(brief, { enabled: true }));
      const asking = ask(ann, 'brief', { of: brief });
      await resultOf(answer(await next('inline_query', brief), [article('b')], wide, brief));
      const shown = await resultOf(asking);
      await resultOf(
        end === 'off'
          ? setMode(brief, { enabled: false })
          : service.app(ann, 'DELETE', `/api/me/bots/${brief.id}`),
      );
      expect((await choose(ann, shown, 'b')).status, end).toBe(404);
    }
  });

  test('if the stored answers of a bot exceed the size limit, the oldest answers are removed', async () => {
    const big = await service.newBot(ann, 'big');
    await resultOf(setMode(big, { enabled: true }));
    const results = Array.from({ length: 30 }, (_, i) => article(`${i}`, 'x'.repeat(4_096)));
    const shown: Any[] = [];
    // Each answer has about 125 KiB, and Petrel keeps 4 MiB of answers per bot.
    for (let i = 0; i < 36; i++) {
      const asking = ask(i % 2 === 0 ? ann : ben, `big ${i}`, { of: big });
      const question = await next('inline_query', big);
      await resultOf(answer(question, results, { cache_time: 1_000 - i }, big));
      shown.push(await resultOf(asking));
    }
    expect((await choose(ann, shown[0], '0')).status).toBe(404);
    await resultOf(choose(ann, shown[8], '0'));
    await resultOf(choose(ben, shown[35], '0'));
  }, 120_000);
});

test('an inline result is refused if the chat does not permit inline results or only administrators may write', async () => {
  const members = `/api/chats/${group}/members`;
  const { shown } = await asked(ben, 'rights', [article('r')]);
  const rights = { can_restrict_members: true };
  await resultOf(service.app(ann, 'PUT', `${members}/${bot.id}`, { status: 'administrator', rights }));
  const permit = (permissions: object) =>
    resultOf(service.bot(bot, 'setChatPermissions', { chat_id: group, permissions }));
  const all = Object.fromEntries(
    [
      ...['messages', 'photos', 'videos', 'audios', 'documents', 'voice_notes', 'video_notes', 'polls'],
      'other_messages',
    ].map((what) => [`can_send_${what}`, true]),
  );
  await permit({ ...all, can_send_other_messages: false });
  expect((await choose(ben, shown, 'r')).body).toEqual(
    bad('not enough rights to send inline bot results to the chat'),
  );
  await permit(all);
  await resultOf(choose(ben, shown, 'r'));
  // Only administrators may write to a channel.
  await resultOf(service.app(ann, 'PUT', `/api/chats/${channel}/members/${ben.id}`, {}));
  expect((await choose(ben, shown, 'r', { chat: channel })).body).toEqual(
    bad('need administrator rights in the channel chat'),
  );
  await resultOf(service.app(ann, 'DELETE', `${members}/${bot.id}`));
  await drop(bot);
});

describe('inline messages', () => {
  const edit = (method: string, params: object, by = bot) => service.bot(by, method, params as never);
  const pause = () => new Promise((resolve) => setTimeout(resolve, 1_050));

  test('a bot can edit its inline message in a chat to which it does not belong, and other bots in the chat get the edit', async () => {
    const { message, chosen } = await sendInline(ben);
    const { inline_message_id } = chosen;
    await drop(other);
    const edited = edit('editMessageText', { inline_message_id, text: 'new cat', reply_markup: keyboard });
    expect((await edited).body).toEqual({ ok: true, result: true });
    const [listed] = await itemsOf(service.app(ann, 'GET', `/api/chats/${group}/messages?limit=1`));
    expect(listed).toMatchObject({ message_id: message.message_id, text: 'new cat', from: { id: ben.id } });
    expect(await next('edited_message', other)).toMatchObject({ text: 'new cat', via_bot: { id: bot.id } });
    await pause();
    await resultOf(edit('editMessageReplyMarkup', { inline_message_id }));
    await pause();
    expect((await edit('editMessageReplyMarkup', { inline_message_id })).body.description).toMatch(
      /not modified/,
    );
  });

  test('edits of an inline message can be coalesced', async () => {
    const { message, chosen } = await sendInline(ben);
    const { inline_message_id } = chosen;
    for (let i = 0; i < 5; i++) {
      const edited = edit('editMessageText', { inline_message_id, text: `cat ${i}`, coalesce: true });
      expect((await edited).body).toEqual({ ok: true, result: true });
    }
    const textOf = async () => {
      const [listed] = await itemsOf(service.app(ann, 'GET', `/api/chats/${group}/messages?limit=1`));
      expect(listed.message_id).toBe(message.message_id);
      return listed.text;
    };
    await expect.poll(textOf).toBe('cat 4');
  });

  test('the bot can edit the caption and the media of an inline message', async () => {
    const photo = {
      ...{ type: 'photo', id: '1', photo_url: 'https://example.org/1.jpg', reply_markup: keyboard },
    };
    const { message, chosen } = await sendInline(ann, other.id, photo);
    const { inline_message_id } = chosen;
    const read = async () =>
      (await itemsOf(service.app(ann, 'GET', `/api/chats/${other.id}/messages?limit=1`)))[0];
    await resultOf(edit('editMessageCaption', { inline_message_id, caption: 'words' }));
    expect(await read()).toMatchObject({ message_id: message.message_id, caption: 'words' });
    await pause();
    const media = { type: 'photo', media: 'https://example.org/2.jpg' };
    await resultOf(edit('editMessageMedia', { inline_message_id, media }));
    expect((await read()).photo[0].url).toBe('https://example.org/2.jpg');
    expect(
      (await edit('editMessageMedia', { inline_message_id, media: { type: 'photo', media: 'attach://x' } }))
        .body,
    ).toEqual(bad('wrong file identifier/HTTP URL specified'));
  });

  test('the bot can move and stop an inline live location, whose live period starts when a person sends it', async () => {
    const at = { latitude: 1, longitude: 2 };
    const live = { type: 'location', id: '1', title: 'L', ...at, live_period: 60, reply_markup: keyboard };
    const { message, chosen } = await sendInline(ann, other.id, live);
    const { inline_message_id } = chosen;
    const read = async () =>
      (await itemsOf(service.app(ann, 'GET', `/api/chats/${other.id}/messages?limit=1`)))[0].location;
    const { live_until } = await read();
    expect(Math.abs(live_until - message.date - 60)).toBeLessThan(5);
    const to = { latitude: 3, longitude: 4 };
    expect(await resultOf(edit('editMessageLiveLocation', { inline_message_id, ...to }))).toBe(true);
    expect(await read()).toEqual({ ...to, live_period: 60, live_until });
    expect((await edit('stopMessageLiveLocation', { inline_message_id }, other)).body).toEqual(
      bad('MESSAGE_ID_INVALID'),
    );
    await expect
      .poll(async () => (await edit('stopMessageLiveLocation', { inline_message_id })).body)
      .toEqual({ ok: true, result: true });
    expect(await read()).toEqual({ ...to, live_until: 0 });
  });

  test('a location that is not live has no direction and no radius', async () => {
    const at = { latitude: 1, longitude: 2 };
    const more = { heading: 90, proximity_alert_radius: 100 };
    const place = { type: 'location', id: '1', title: 'L', ...at, ...more, reply_markup: keyboard };
    const { message } = await sendInline(ann, other.id, place);
    expect(message.location).toEqual(at);
  });

  test('only the bot that created an inline message can edit it', async () => {
    const { message, chosen } = await sendInline(ann);
    const path = `/api/chats/${group}/messages/${message.message_id}`;
    const refused = "Bad Request: message can't be edited";
    expect((await service.app(ann, 'PATCH', path, { text: 'mine' })).body.description).toBe(refused);
    const invalid = bad('MESSAGE_ID_INVALID');
    const { inline_message_id } = chosen;
    expect((await edit('editMessageText', { inline_message_id, text: 'x' }, other)).body).toEqual(invalid);
    expect((await edit('editMessageText', { inline_message_id: 'abc', text: 'x' })).body).toEqual(invalid);
    const stop = await edit('stopPoll', {
      inline_message_id,
      chat_id: group,
      message_id: message.message_id,
    });
    expect(stop.body).toEqual(bad('parameter "inline_message_id" is not supported'));
    await resultOf(service.app(ann, 'DELETE', path));
    expect((await edit('editMessageText', { inline_message_id, text: 'x' })).body).toEqual(invalid);
  });

  test('the bot gets a button press without the id of the chat, and can answer the press', async () => {
    const { message, chosen } = await sendInline(ann);
    const press = await resultOf(
      service.app(ben, 'POST', `/api/chats/${group}/messages/${message.message_id}/callback`, {
        data: 'more',
      }),
    );
    const query = await next('callback_query');
    expect(query).toEqual({
      id: press.callback_query_id,
      from: expect.objectContaining({ id: ben.id }),
      inline_message_id: chosen.inline_message_id,
      chat_instance: expect.stringMatching(/^-?\d+$/),
      data: 'more',
    });
    await resultOf(service.bot(bot, 'answerCallbackQuery', { callback_query_id: query.id, text: 'ok' }));
    const second = await sendInline(ann);
    await resultOf(
      service.app(ann, 'POST', `/api/chats/${group}/messages/${second.message.message_id}/callback`, {
        data: 'more',
      }),
    );
    const again = await next('callback_query');
    expect(again.chat_instance).toBe(query.chat_instance);
    expect(again.inline_message_id).not.toBe(query.inline_message_id);
    const unknown = await service.app(
      ben,
      'POST',
      `/api/chats/${group}/messages/${message.message_id}/callback`,
      { data: 'none' },
    );
    expect(unknown.body.description).toBe('Bad Request: button not found');
  });

  test('a button press in a direct chat with another bot goes to the bot that created the inline message', async () => {
    const { message } = await sendInline(ann, other.id);
    await drop(other);
    await resultOf(
      service.app(ann, 'POST', `/api/chats/${other.id}/messages/${message.message_id}/callback`, {
        data: 'more',
      }),
    );
    expect((await next('callback_query')).from.id).toBe(ann.id);
    expect(await resultOf(service.bot(other, 'getUpdates', { limit: 5 }))).toEqual([]);
  });

  test('a forward of an inline message names the inline bot, but a copy by another bot does not', async () => {
    const { message } = await sendInline(ann);
    const { message_id } = message;
    const [forwarded] = await resultOf(
      service.app(ben, 'POST', `/api/chats/${group}/forward`, {
        from_chat_id: group,
        message_ids: [message_id],
      }),
    );
    const copy = await resultOf(
      service.bot(other, 'copyMessage', { chat_id: group, from_chat_id: group, message_id }),
    );
    const page = await itemsOf(service.app(ben, 'GET', `/api/chats/${group}/messages?limit=2`));
    const byId = new Map(page.map((each: Any) => [each.message_id, each]));
    expect(byId.get(forwarded.message_id)).toMatchObject({
      ...{ forward_from: { id: ann.id }, via_bot: { id: bot.id } },
    });
    expect('reply_markup' in (byId.get(forwarded.message_id) as Any)).toBe(false);
    expect('via_bot' in (byId.get(copy.message_id) as Any)).toBe(false);
  });

  test("if another bot forwards an inline message, that other bot's token signs the login buttons of the forward", async () => {
    const { message } = await sendInline(ann);
    const { message_id } = await resultOf(
      service.bot(other, 'forwardMessage', {
        ...{ chat_id: group, from_chat_id: group, message_id: message.message_id },
      }),
    );
    const url = 'https://example.org/login';
    const reply_markup = { inline_keyboard: [[{ text: 'Log in', login_url: { url } }]] };
    await resultOf(
      service.bot(other, 'editMessageReplyMarkup', { chat_id: group, message_id, reply_markup }),
    );
    const opened = await resultOf(
      service.app(ben, 'POST', `/api/chats/${group}/messages/${message_id}/link`, { url }),
    );
    const { hash, ...fields } = Object.fromEntries(new URL(opened.url).searchParams);
    const text = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
    const signed = (token: string) =>
      createHmac('sha256', createHash('sha256').update(token).digest())
        .update(text.sort().join('\n'))
        .digest('hex');
    expect(hash).not.toBe(signed(bot.token));
    expect(hash).toBe(signed(other.token));
  });

  test('an inline message that was evicted from Redis can be read and edited, and its buttons still work', async () => {
    const { message, chosen } = await sendInline(ann);
    await eviction.evict(new Set([`${group}`]));
    const [listed] = await itemsOf(service.app(ann, 'GET', `/api/chats/${group}/messages?limit=1`));
    expect(listed).toEqual(message);
    await eviction.evict(new Set([`${group}`]));
    const path = `/api/chats/${group}/messages/${message.message_id}/callback`;
    await resultOf(service.app(ann, 'POST', path, { data: 'more' }));
    expect((await next('callback_query')).inline_message_id).toBe(chosen.inline_message_id);
    await eviction.evict(new Set([`${group}`]));
    await resultOf(edit('editMessageText', { ...chosen, text: 'cold cat' }));
  });

  test("a person's data export contains the name of the bot that created an inline message", async () => {
    const { message } = await sendInline(ben, group, article('export', 'exported cat'));
    const answered = await fetch(`${service.fronts[0].url}/api/me/export`, {
      headers: { authorization: `Bearer ${ben.token}` },
    });
    const lines = (await answered.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const text = JSON.stringify(lines.filter((line) => JSON.stringify(line).includes('exported cat')));
    expect(text).toContain(`"message_id":${message.message_id}`);
    expect(text).toContain('"via_bot"');
  });
});

test('a call that is repeated with its idempotency key sends one message and notifies the bot once', async () => {
  const { shown } = await asked(ann, 'once', [article('o', 'only once', { reply_markup: keyboard })]);
  const send = (front: number) =>
    fetch(`${service.fronts[front]?.url}/api/chats/${group}/inline_result`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ann.token}`,
        'content-type': 'application/json',
        'idempotency-key': 'inline-once',
      },
      body: JSON.stringify({ inline_query_id: shown.inline_query_id, result_id: 'o' }),
    }).then((answered) => answered.json());
  const [first, second] = [await send(0), await send(1)];
  expect(second).toEqual(first);
  await next('chosen_inline_result');
  expect(await resultOf(service.bot(bot, 'getUpdates', { limit: 10 }))).toEqual([]);
});

test('a person who sends many queries in a burst gets 429 for some of them', async () => {
  const eager = await service.newUser('eager');
  await resultOf(service.app(ann, 'PUT', `/api/chats/${group}/members/${eager.id}`, {}));
  await asked(ann, 'rate', [], { cache_time: 300 });
  const began = performance.now();
  const answers = await Promise.all(Array.from({ length: 100 }, () => ask(eager, 'rate')));
  const seconds = (performance.now() - began) / 1_000;
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
  // A person may send 30 queries in a burst, and then two queries per second.
  const accepted = answers.filter(({ status }) => status === 200).length;
  expect(accepted).toBeGreaterThanOrEqual(30);
  expect(accepted).toBeLessThanOrEqual(35 + 2 * seconds);
});

import { Api } from 'grammy';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { type Eviction, openEviction } from '../interface/eviction.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
let eviction: Eviction;
let ann: TestUser;
let ben: TestUser;
let eve: TestUser;
let bot: TestBot;
let other: TestBot;
let group: number;
let api: Api;

onSharedService(async (running) => {
  service = running;
  eviction = await openEviction(service);
  [ann, ben, eve] = [
    await service.newUser('ann'),
    await service.newUser('ben'),
    await service.newUser('eve'),
  ];
  [bot, other] = [await service.newBot(ann, 'asker'), await service.newBot(ann, 'copier')];
  group = await service.newGroup(ann, 'Club', [ben, bot, other]);
  for (const each of [bot, other]) await service.openChat(ann, each);
  api = new Api(bot.token, { apiRoot: service.fronts[0]?.url as string });
  // Drops the updates that were caused by the setup of this file.
  for (const each of [bot, other]) await resultOf(service.bot(each, 'getUpdates', { offset: -1 }));
});
afterAll(async () => {
  await eviction?.close();
});

type Params = Readonly<Record<string, unknown>>;
// biome-ignore lint/suspicious/noExplicitAny: messages and updates of every shape
type Any = any;

const call = (method: string, params: Params = {}, by = bot) =>
  service.bot(by, method, { chat_id: group, ...params });
const send = async (params: Params = {}, by = bot): Promise<Any> =>
  resultOf(call('sendPoll', { question: 'Where?', options: ['Here', 'There'], ...params }, by));
const at = (message: Any, chat = group) => `/api/chats/${chat}/messages/${message.message_id}/poll`;
const vote = (who: TestUser, message: Any, option_ids: readonly number[], front = 0, chat = group) =>
  service.app(who, 'POST', at(message, chat), { option_ids }, front);
const see = (who: TestUser, message: Any, chat = group) =>
  resultOf(service.app(who, 'GET', at(message, chat)));
const counts = (poll: Any) => poll.options.map(({ voter_count }: Any) => voter_count);
const bad = (text: string) => ({ ok: false, error_code: 400, description: `Bad Request: ${text}` });
const evict = (poll: Any) => eviction.evict(new Set([String(poll.id)]));

async function nextUpdate(matches: (update: Any) => boolean, by = bot): Promise<Any> {
  let found: Any;
  await expect
    .poll(
      async () => {
        const updates = await resultOf(service.bot(by, 'getUpdates', { limit: 100 }));
        found = updates.find(matches);
        if (found) await resultOf(service.bot(by, 'getUpdates', { offset: found.update_id + 1 }));
        return found !== undefined;
      },
      { timeout: 15_000 },
    )
    .toBe(true);
  return found;
}

test('a poll has the documented fields and defaults, even when it is sent with grammY', async () => {
  const { poll, message_id } = await api.sendPoll(group, ' Where? ', ['Here', { text: 'There' }]);
  expect(poll).toEqual({
    id: expect.stringMatching(/^\d+$/),
    question: 'Where?',
    options: [
      { persistent_id: '0', text: 'Here', voter_count: 0 },
      { persistent_id: '1', text: 'There', voter_count: 0 },
    ],
    total_voter_count: 0,
    is_closed: false,
    is_anonymous: true,
    type: 'regular',
    allows_multiple_answers: false,
    allows_revoting: true,
    members_only: false,
  });
  const [shown] = await itemsOf(service.app(ben, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(shown).toMatchObject({ message_id, poll: { ...poll, chosen_option_ids: [] } });
  const chats = await itemsOf(service.app(ben, 'GET', '/api/chats'));
  const preview = chats.find(({ id }: Any) => id === group).last_message;
  expect(preview).toMatchObject({ kind: 'poll', file_name: 'Where?' });
});

test('a person has one vote, can change or retract the vote, and sees the results after voting', async () => {
  const message = await send();
  expect(counts(await resultOf(vote(ann, message, [0])))).toEqual([1, 0]);
  expect(counts(await resultOf(vote(ann, message, [0], 1)))).toEqual([1, 0]);
  const changed = await resultOf(vote(ann, message, [1], 1));
  expect(changed).toMatchObject({ chosen_option_ids: [1], total_voter_count: 1 });
  expect(counts(changed)).toEqual([0, 1]);
  const before = await see(ben, message);
  expect([counts(before), before.total_voter_count, before.chosen_option_ids]).toEqual([[0, 0], 1, []]);
  expect(counts(await resultOf(vote(ben, message, [0])))).toEqual([1, 1]);
  const without = await resultOf(vote(ben, message, []));
  expect([counts(without), without.total_voter_count]).toEqual([[0, 0], 1]);
});

test('a person can choose several options only if the poll allows it', async () => {
  const one = await send();
  expect((await vote(ann, one, [0, 1])).body).toEqual(bad('invalid option ID specified'));
  const many = await send({ allows_multiple_answers: true, options: ['a', 'b', 'c'] });
  const voted = await resultOf(vote(ann, many, [2, 0, 2]));
  expect([counts(voted), voted.total_voter_count, voted.chosen_option_ids]).toEqual([[1, 0, 1], 1, [0, 2]]);
  for (const wrong of [[-1], [3], [0, 9]])
    expect((await vote(ann, many, wrong)).body).toEqual(bad('invalid option ID specified'));
  expect(await see(ann, many)).toEqual(voted);
});

test('a person votes once in a quiz and then sees the answer', async () => {
  const message = await send({
    ...{
      type: 'quiz',
      correct_option_id: 1,
      explanation: 'It is <b>there</b>',
      explanation_parse_mode: 'HTML',
    },
  });
  expect(message.poll).toMatchObject({
    ...{ type: 'quiz', allows_revoting: false, correct_option_id: 1, correct_option_ids: [1] },
    ...{ explanation: 'It is there', explanation_entities: [{ type: 'bold', offset: 6, length: 5 }] },
  });
  const secret = await see(ann, message);
  for (const name of ['correct_option_id', 'correct_option_ids', 'explanation'])
    expect(secret).not.toHaveProperty(name);
  expect(await resultOf(vote(ann, message, [0]))).toMatchObject({
    ...{ correct_option_id: 1, explanation: 'It is there', chosen_option_ids: [0] },
  });
  for (const options of [[1], []])
    expect((await vote(ann, message, options)).body).toEqual(bad("vote can't be changed"));
  expect(counts(await see(ann, message))).toEqual([1, 0]);
  const regular = await send({ allows_revoting: false });
  await resultOf(vote(ann, regular, [0]));
  expect((await vote(ann, regular, [])).body).toEqual(bad("vote can't be changed"));
});

test('a bot gets the new counts of each of its polls, and also each vote if the poll is not anonymous', async () => {
  const message = await send({ is_anonymous: false });
  const { id } = message.poll;
  await resultOf(vote(ben, message, [1]));
  const { poll_answer } = await nextUpdate(({ poll_answer: each }) => each?.poll_id === id);
  expect(poll_answer).toEqual({
    ...{ poll_id: id, option_ids: [1], option_persistent_ids: ['1'] },
    user: expect.objectContaining({ id: ben.id, is_bot: false, first_name: expect.any(String) }),
  });
  const { poll } = await nextUpdate(({ poll: each }) => each?.id === id);
  expect(poll).toEqual({
    ...{ ...message.poll, total_voter_count: 1 },
    options: [message.poll.options[0], { ...message.poll.options[1], voter_count: 1 }],
  });
  await resultOf(vote(ben, message, []));
  const retracted = await nextUpdate(({ poll_answer: each }) => each?.poll_id === id);
  expect(retracted.poll_answer.option_ids).toEqual([]);
  expect(counts((await nextUpdate(({ poll: each }) => each?.id === id)).poll)).toEqual([0, 0]);

  const anonymous = await send();
  await resultOf(vote(ben, anonymous, [0]));
  const seen: Any[] = [];
  await nextUpdate((update) => {
    seen.push(update);
    return update.poll?.id === anonymous.poll.id;
  });
  expect(seen.filter(({ poll_answer: each }) => each?.poll_id === anonymous.poll.id)).toEqual([]);
  const foreign = await resultOf(service.bot(other, 'getUpdates'));
  expect(foreign.filter((update: Any) => update.poll || update.poll_answer)).toEqual([]);
});

test('several votes within one second cause one update, which has the latest counts', async () => {
  const message = await send({ options: ['a', 'b', 'c'] });
  for (const option of [0, 1, 2, 1]) await resultOf(vote(ann, message, [option]));
  const { poll } = await nextUpdate(({ poll: each }) => each?.id === message.poll.id);
  expect(counts(poll)).toEqual([0, 1, 0]);
  const later = await resultOf(service.bot(bot, 'getUpdates'));
  expect(later.filter(({ poll: each }: Any) => each?.id === message.poll.id)).toEqual([]);
});

test('stopPoll closes a quiz once, replaces its keyboard and shows everybody the correct answer', async () => {
  const keyboard = (text: string) => ({ inline_keyboard: [[{ text, callback_data: 'x' }]] });
  const message = await send({ type: 'quiz', correct_option_id: 0, reply_markup: keyboard('old') });
  const place = { message_id: message.message_id };
  await resultOf(vote(ann, message, [1]));
  const stopped = await resultOf(call('stopPoll', { ...place, reply_markup: keyboard('new') }));
  expect(stopped).toMatchObject({ id: message.poll.id, is_closed: true, total_voter_count: 1 });
  expect(counts(stopped)).toEqual([0, 1]);
  const { poll } = await nextUpdate(({ poll: each }) => each?.id === message.poll.id && each.is_closed);
  expect(poll).toEqual(stopped);
  const [shown] = await itemsOf(service.app(ben, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(shown).toMatchObject({
    ...{ reply_markup: keyboard('new'), edit_date: expect.any(Number) },
    poll: { is_closed: true, correct_option_id: 0, chosen_option_ids: [] },
  });
  expect(counts(shown.poll)).toEqual([0, 1]);
  expect((await call('stopPoll', place)).body).toEqual(bad('poll has already been closed'));
  expect((await vote(ben, message, [0])).body).toEqual(bad('poll has already been closed'));

  const bare = await send();
  await resultOf(call('stopPoll', { message_id: bare.message_id }));
  const [plain] = await itemsOf(service.app(ben, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(plain).not.toHaveProperty('edit_date');
});

test('stopPoll refuses messages without a poll, forwarded polls, and polls of other bots', async () => {
  const text = await resultOf(call('sendMessage', { text: 'x' }));
  const stop = async (message_id: number, by = bot) => (await call('stopPoll', { message_id }, by)).body;
  expect(await stop(text.message_id)).toEqual(bad('message is not a poll'));
  expect(await stop(999_999)).toEqual(bad('message with poll to stop not found'));
  const message = await send();
  expect(await stop(message.message_id, other)).toEqual(bad("poll can't be stopped"));
  const source = { from_chat_id: group, message_id: message.message_id };
  const forward = await resultOf(call('forwardMessage', source));
  expect(await stop(forward.message_id)).toEqual(bad("poll can't be stopped"));
  expect(await see(ann, message)).toMatchObject({ is_closed: false });
});

test('a poll closes at its close date, and its bot gets one update', async () => {
  const message = await send({ open_period: 5 });
  expect(message.poll.open_period).toBe(5);
  // The poll is created before its message, so the date of the message may be a second later.
  expect([message.date + 4, message.date + 5]).toContain(message.poll.close_date);
  await resultOf(vote(ann, message, [0]));
  const { poll } = await nextUpdate(({ poll: each }) => each?.id === message.poll.id && each.is_closed);
  expect(counts(poll)).toEqual([1, 0]);
  expect((await vote(ben, message, [0])).body).toEqual(bad('poll has already been closed'));
  expect((await call('stopPoll', { message_id: message.message_id })).body).toEqual(
    bad('poll has already been closed'),
  );
  expect(await see(ben, message)).toMatchObject({ is_closed: true, total_voter_count: 1 });
});

test('a forward shows the original poll, even after the original message was deleted', async () => {
  const message = await send();
  await resultOf(vote(ann, message, [0]));
  const forward = await resultOf(
    service.bot(bot, 'forwardMessage', {
      ...{ chat_id: ann.id, from_chat_id: group, message_id: message.message_id },
    }),
  );
  expect(forward.poll).toMatchObject({ id: message.poll.id, total_voter_count: 1 });
  await resultOf(vote(ben, message, [1]));
  expect(await see(ann, forward, bot.id)).toMatchObject({ total_voter_count: 2, chosen_option_ids: [0] });
  await resultOf(call('deleteMessage', { message_id: message.message_id }));
  expect((await vote(ben, message, [0])).body.error_code).toBe(404);
  const voted = await resultOf(vote(ann, forward, [1], 1, bot.id));
  expect([counts(voted), voted.total_voter_count]).toEqual([[0, 2], 2]);
});

test('a copied poll is a new poll of the copying bot, and a quiz can be copied only by a bot that knows the answer', async () => {
  const message = await send({ allows_multiple_answers: true, is_anonymous: false });
  await resultOf(vote(ann, message, [0]));
  const source = { from_chat_id: group, message_id: message.message_id };
  const { message_id } = await resultOf(call('copyMessage', { ...source, caption: 'ignored' }, other));
  const [copy] = await itemsOf(service.app(ann, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(copy).toMatchObject({ message_id, from: { id: other.id }, poll: { question: 'Where?' } });
  expect(copy.poll).toMatchObject({
    allows_multiple_answers: true,
    is_anonymous: false,
    total_voter_count: 0,
  });
  expect(copy.poll.id).not.toBe(message.poll.id);
  await resultOf(vote(ben, copy, [0, 1]));
  const { poll_answer } = await nextUpdate(({ poll_answer: each }) => each?.poll_id === copy.poll.id, other);
  expect(poll_answer.option_ids).toEqual([0, 1]);
  expect(await see(ann, message)).toMatchObject({ total_voter_count: 1 });

  const quiz = await send({ type: 'quiz', correct_option_id: 0 });
  const secret = { from_chat_id: group, message_id: quiz.message_id };
  expect((await call('copyMessage', secret, other)).body).toEqual(bad("message can't be copied"));
  const both = { from_chat_id: group, message_ids: [message.message_id, quiz.message_id] };
  expect(await resultOf(call('copyMessages', both, other))).toHaveLength(1);
  expect(await resultOf(call('copyMessages', both))).toHaveLength(2);
  await resultOf(call('stopPoll', { message_id: quiz.message_id }));
  await resultOf(call('copyMessage', secret, other));
  const [open] = await itemsOf(service.app(ann, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(open.poll).toMatchObject({ type: 'quiz', is_closed: false });
});

test('a poll that is not anonymous cannot be forwarded or copied to a channel', async () => {
  const { id: channel } = await resultOf(
    service.app(ann, 'POST', '/api/chats', { type: 'channel', title: 'News' }),
  );
  const rights = { can_post_messages: true };
  await resultOf(
    service.app(ann, 'PUT', `/api/chats/${channel}/members/${bot.id}`, { status: 'administrator', rights }),
  );
  const [named, secret] = [await send({ is_anonymous: false }), await send()];
  const from = { chat_id: channel, from_chat_id: group };
  const refused = bad("non-anonymous polls can't be sent to channel chats");
  const ids = [secret.message_id, named.message_id];
  for (const method of ['forwardMessage', 'copyMessage'])
    expect((await call(method, { ...from, message_id: named.message_id })).body).toEqual(refused);
  for (const method of ['forwardMessages', 'copyMessages'])
    expect((await call(method, { ...from, message_ids: ids })).body).toEqual(refused);
  const forward = { from_chat_id: group, message_ids: ids };
  expect((await service.app(ann, 'POST', `/api/chats/${channel}/forward`, forward)).body).toEqual(refused);
  await resultOf(call('forwardMessages', { ...from, message_ids: [secret.message_id] }));
  expect(await itemsOf(service.app(ann, 'GET', `/api/chats/${channel}/messages`))).toHaveLength(1);
});

test('100 polls can be copied in one call', async () => {
  const message_ids: number[] = [];
  for (let i = 0; i < 100; i++) message_ids.push((await send()).message_id);
  const copied = await resultOf(call('copyMessages', { from_chat_id: group, message_ids }, other));
  expect(copied).toHaveLength(100);
});

test('a poll that was evicted from Redis keeps its votes, and the voters cannot vote again', async () => {
  const message = await send({ allows_multiple_answers: true });
  const quiz = await send({ type: 'quiz', correct_option_id: 0 });
  for (const [who, options] of [
    [ann, [0]],
    [ben, [0, 1]],
  ] as const)
    await resultOf(vote(who, message, options));
  await resultOf(vote(ann, quiz, [1]));
  for (const poll of [message.poll, quiz.poll]) expect(await evict(poll)).toBeGreaterThanOrEqual(2);
  expect(await see(ben, message)).toMatchObject({ total_voter_count: 2, chosen_option_ids: [0, 1] });
  expect(counts(await see(ben, message))).toEqual([2, 1]);
  await evict(message.poll);
  const changed = await resultOf(vote(ben, message, [1]));
  expect([counts(changed), changed.total_voter_count]).toEqual([[1, 1], 2]);
  expect((await vote(ann, quiz, [0])).body).toEqual(bad("vote can't be changed"));
  await resultOf(call('stopPoll', { message_id: quiz.message_id }));
  await evict(quiz.poll);
  expect(await see(ben, quiz)).toMatchObject({ is_closed: true, total_voter_count: 1 });
  expect((await vote(ben, quiz, [0])).body).toEqual(bad('poll has already been closed'));
});

test('if a person sends votes in a quiz to two fronts at the same time, exactly one vote is stored', async () => {
  for (let round = 0; round < 10; round++) {
    const message = await send({ type: 'quiz', correct_option_id: 0 });
    const answers = await Promise.all([vote(ann, message, [0], 0), vote(ann, message, [1], 1)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    const won = answers.findIndex(({ status }) => status === 200);
    expect(counts(await see(ann, message))).toEqual(won === 0 ? [1, 0] : [0, 1]);
  }
});

test('the result of stopPoll contains every accepted vote and no other vote', async () => {
  for (let round = 0; round < 10; round++) {
    const message = await send();
    const stopping = call('stopPoll', { message_id: message.message_id });
    const votes = await Promise.all([vote(ann, message, [0], 1), vote(ben, message, [1], 1)]);
    const stopped = await resultOf(stopping);
    expect(counts(stopped)).toEqual(votes.map(({ status }) => (status === 200 ? 1 : 0)));
    expect(await see(eve, message).catch(() => 'hidden')).toBe('hidden');
    expect(counts(await see(ann, message))).toEqual(counts(stopped));
  }
});

test('people who cannot read the message can neither see the poll nor vote', async () => {
  const message = await send();
  for (const answer of [service.app(eve, 'GET', at(message)), vote(eve, message, [0])])
    expect((await answer).body).toMatchObject({ ok: false });
  const text = await resultOf(call('sendMessage', { text: 'x' }));
  expect((await vote(ann, text, [0])).body).toEqual(bad('message is not a poll'));
  expect(await see(ann, message)).toMatchObject({ total_voter_count: 0 });
});

test.each([
  [{ question: ' ' }, 'text must be non-empty'],
  [{ question: 'q'.repeat(301) }, 'poll question length must not exceed 300'],
  [{ options: [] }, 'poll must have at least one answer option'],
  [{ options: null }, 'poll must have at least one answer option'],
  [{ options: 'abcdefghijklm'.split('') }, "poll can't have more than 12 options"],
  [{ options: ['a', '\u200b'] }, 'text must be non-empty'],
  [{ options: ['o'.repeat(101)] }, 'poll options length must not exceed 100'],
  [{ options: '[1' }, "can't parse options JSON object"],
  [{ options: [1] }, "can't parse options JSON object"],
  [{ type: 'vote' }, 'unsupported poll type specified'],
  [{ type: 'quiz' }, 'wrong correct option ID specified'],
  [{ type: 'quiz', correct_option_id: 2 }, 'wrong correct option ID specified'],
  [{ type: 'quiz', correct_option_id: -1 }, 'wrong correct option ID specified'],
  [{ type: 'quiz', correct_option_ids: [0, 1] }, 'wrong correct option ID specified'],
  [
    { type: 'quiz', allows_multiple_answers: true, correct_option_ids: [1, 0] },
    'wrong correct option ID specified',
  ],
  [{ type: 'quiz', correct_option_id: 0, explanation: 'e'.repeat(201) }, 'poll explanation is too long'],
  [{ type: 'quiz', correct_option_id: 0, explanation: 'a\nb\nc\nd' }, 'poll explanation is too long'],
  [{ open_period: 4 }, 'parameter "open_period" must be an integer from 5 to 2628000'],
  [{ close_date: 1 }, 'parameter "close_date" must be 5 to 2628000 seconds in the future'],
  [{ open_period: 5, close_date: 1 }, 'parameter "close_date" must be absent if open_period is given'],
])('sendPoll refuses %j', async (params, text) => {
  expect((await call('sendPoll', { question: 'Q', options: ['a', 'b'], ...params })).body).toEqual(bad(text));
});

test('a call that is repeated with its idempotency key sends one poll', async () => {
  const once = async (front: number) => {
    const answer = await fetch(`${service.fronts[front]?.url}/bot${bot.token}/sendPoll`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'one poll' },
      body: JSON.stringify({ chat_id: group, question: 'Once?', options: ['a'] }),
    });
    return ((await answer.json()) as Any).result;
  };
  const first = await once(0);
  expect(first.poll.question).toBe('Once?');
  expect(await once(1)).toEqual(first);
  const [newest] = await itemsOf(service.app(ann, 'GET', `/api/chats/${group}/messages?limit=1`));
  expect(newest.message_id).toBe(first.message_id);
});

test('an export contains the person’s votes', async () => {
  const dan = await service.newUser('dan');
  await service.openChat(dan, bot);
  const message = await resultOf(
    service.bot(bot, 'sendPoll', { chat_id: dan.id, question: 'Q', options: ['a', 'b'] }),
  );
  await resultOf(vote(dan, message, [1], 0, bot.id));
  await evict(message.poll);
  const url = `${service.fronts[0]?.url}/api/me/export`;
  const text = await (await fetch(url, { headers: { Authorization: `Bearer ${dan.token}` } })).text();
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Any);
  expect(lines.filter(({ kind }) => kind === 'vote')).toEqual([
    { kind: 'vote', poll_id: message.poll.id, option_ids: [1], date: expect.any(Number) },
  ]);
});

test('a deleted person’s votes are removed, even from a closed quiz', async () => {
  const dan = await service.newUser('dan2');
  await service.openChat(dan, bot);
  const shared = await service.newGroup(ann, 'Leavers', [dan, bot]);
  const message = await resultOf(
    service.bot(bot, 'sendPoll', {
      ...{ chat_id: shared, question: 'Q', options: ['a', 'b'], type: 'quiz', correct_option_id: 0 },
    }),
  );
  await resultOf(vote(dan, message, [1], 0, shared));
  await resultOf(vote(ann, message, [0], 0, shared));
  await resultOf(service.bot(bot, 'stopPoll', { chat_id: shared, message_id: message.message_id }));
  await evict(message.poll);
  await resultOf(service.app(dan, 'DELETE', '/api/me', { confirm: true }));
  await expect.poll(async () => counts(await see(ann, message, shared))).toEqual([1, 0]);
  expect(await see(ann, message, shared)).toMatchObject({ total_voter_count: 1, is_closed: true });
});

test('if the message of a poll is refused, the poll is deleted', async () => {
  const question = `Q ${Math.random()}`;
  const chat_id = await service.newGroup(ann, 'Without bot', [ben]);
  const { body } = await service.bot(bot, 'sendPoll', { chat_id, question, options: ['a'] });
  expect(body).toMatchObject({ ok: false, error_code: 403 });
  await resultOf(service.bot(bot, 'sendPoll', { chat_id: group, question: 'last', options: ['a'] }));
  const client = new pg.Client({ connectionString: service.databaseUrl });
  await client.connect();
  try {
    const having = async (text: string) =>
      (await client.query('select from polls where position($1::bytea in record) > 0', [Buffer.from(text)]))
        .rowCount;
    // Within a partition, Postgres rows are written in the order of the journal. The last poll and the refused poll may
    // be in different partitions, so also waits until the row of the refused poll is removed.
    await expect.poll(() => having('last')).toBe(1);
    await expect.poll(() => having(question)).toBe(0);
  } finally {
    await client.end();
  }
});

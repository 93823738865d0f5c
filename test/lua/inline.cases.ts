/** Test cases for the scripts of inline mode, with every status that they can return. */
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { messageFlags, messageKinds, pack, unpack } from '../../src/store/core/codec.js';
import { type ChatRef, chatText } from '../../src/store/core/keys.js';
import { queueId } from '../../src/store/core/queue_ids.js';
import type { Case } from './cases.js';
import { full, home, type More, open, state, stream } from './update_world.js';
import {
  base,
  bot,
  direct,
  group,
  incarnation,
  issued,
  keyboard,
  keys,
  partitionOf,
  seeds,
  user,
} from './world.js';

const digits = String(home).padStart(3, '0');
const queueKeys = {
  ...{ meta: keys.meta(home), journal: keys.journal(home), state: keys.queueState(bot) },
  ...{ queue: keys.queue(bot), due: keys.webhooksDue(home), request: keys.request(home, 'r') },
};
const asked = `${base + 1}${digits}`;
const question = (by = bot) => pack([`${by}`, `${user}`, 'cats', 'own', 'all']);
const [queries, answers, cache] = [keys.inlineQueries(home), keys.inlineAnswers(home), keys.inlineCache(bot)];
const kept = { ...{ answers: keys.inlineAnswersOf(bot), bytes: keys.inlineBytes(bot) } };

const find = (what: string, more: More, digests = ['own', 'all'], checked = ''): Case => ({
  ...{ script: 'inline/find', what },
  keys: { meta: keys.meta(home), state: keys.queueState(bot), cache, answer: answers },
  args: { checked, digests },
  ...more,
});
const ask = (what: string, more: More, args = {}, checked = ''): Case => ({
  ...{ script: 'inline/ask', what },
  keys: { ...queueKeys, query: queries, channel: keys.botChannel(bot) },
  args: {
    ask: pack([`${bot}`, `${user}`, 'cats', 'own', 'all', digits, checked]),
    ...{ from: pack({ id: user }), extra: pack({ query: 'cats' }), ...args },
  },
  ...more,
});
const ready = [open(), seeds.queue()];
const first = queueId(bot, 1);
const listOf = ({ isListed = false, commands = [] as string[] } = {}) =>
  pack([[1, 63, 'a', 100, isListed, '', '8', ...commands]]);
const orders = listOf({ commands: [' pay ', 'shop_bot'] });
/** A bot with one route, which takes all updates. */
const routed = (own = {}, ofRoute = {}) => [
  ...[open(), seeds.queue({ mask: 0, own: 63, ...own })],
  seeds.hash(keys.routes(bot), { list: listOf() }),
  seeds.hash(keys.queueState(first), { seq: 41, inc: incarnation, bytes: 0, mask: 63, ...ofRoute }),
];
const answer = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'inline/answer', what },
  keys: {
    ...{ meta: keys.meta(home), request: keys.request(home, 'r') },
    ...{ query: queries, answer: answers, cache, ...kept, channel: keys.inlineChannel(bot) },
  },
  args: {
    ...{ id: '5', bot: `${bot}`, cache_s: '300', personal: false, list: 'LL', results: ['a', 'AAA'] },
    ...args,
  },
  ...more,
});
const openQuery = [open(), seeds.text(`${queries}5`, question(), 30_000)];
const stored = ['inline_answer:5', `inline_answers:${bot}`, `inline_bytes:${bot}`, 'inline_query:5', 'req:r'];
const read = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'inline/read', what, keys: { answer: answers } },
  args: { id: '5', user: `${user}`, field: 'l', ...args },
  ...more,
});
const anAnswer = (fields = {}) =>
  seeds.hash(`${answers}5`, { l: 'LL', q: 'cats', b: `${bot}`, u: '', 'r:a': 'AAA', ...fields });
const tell = (what: string, more: More, args = {}): Case => ({
  ...{ script: 'inline/tell_chosen', what },
  keys: { ...queueKeys, channel: keys.botChannel(bot) },
  args: {
    bot: `${bot}`,
    user: `${user}`,
    from: pack({ id: user }),
    extra: pack({ result_id: 'a' }),
    ...args,
  },
  ...more,
});

function presses(chat: ChatRef): Case[] {
  const partition = partitionOf(chat);
  const isDirect = chat === direct;
  const [message, member] = [keys.message(chat, 7), keys.member(chat.id, user)];
  const inChat = String(partition).padStart(3, '0');
  const via = { flags: messageFlags.inline, sender: user, origin: { via: { id: 77, n: 'V' } } };
  const press = (what: string, more: More, args = {}, id = 7): Case => ({
    ...{ script: 'updates/press_inline', what: `${isDirect ? 'direct chat' : 'group'}: ${what}` },
    keys: {
      ...{ meta: keys.meta(partition), journal: keys.journal(partition), outbox: keys.outbox(partition) },
      ...{ chat: keys.chat(chat), ticket: keys.ticket(keys.chat(chat)), message },
      ...{ message_ticket: keys.ticket(message), request: keys.request(partition, 'r') },
      ...{ query: keys.callbackQueries(partition), granted: keys.grantedEdits(chat, 7) },
      ...{ member, member_ticket: keys.ticket(member) },
    },
    args: {
      press: pack([chatText(chat), `${id}`, `${user}`, 'go', inChat, true]),
      ...{ token: 'T', from: 'f', extra: 'x', ...args },
    },
    ...more,
  });
  const at = [open(partition), seeds.chat(chat), ...(isDirect ? [] : [seeds.member(user, 'member')])];
  const on = (given = {}) => [...at, seeds.message(chat, 7, { markup: keyboard('go'), ...via, ...given })];
  const query = `${base + 1}${inChat}`;
  return [
    press('queues a press for the bot of the message', {
      seeds: on(),
      answer: ['ok', query, 1],
      changes: [
        `callback_query:${query}`,
        ...['meta', 'outbox', 'req:r'],
        `granted_edits:${chatText(chat)}:7`,
      ],
      async after(client) {
        const [, fields] = (await client.xrange(keys.outbox(partition), '-', '+'))[0] as [string, string[]];
        expect(fields.slice(0, 4)).toEqual(['b', '77', 'k', 'callback_query']);
        expect(await client.get(keys.callbackQueries(partition) + query)).toBe(
          `${chatText(chat)} ${user} 77`,
        );
      },
    }),
    press('answers an already applied request again', {
      seeds: [...on(), seeds.text(keys.request(partition, 'r'), '123')],
      answer: ['ok', '123', 0],
      changes: [],
    }),
    press('refuses a different run id', { seeds: on(), answer: ['stale_run'] }, { run: 'other' }),
    press('refuses while the journal is full', {
      seeds: [...on(), ...full(partition)],
      answer: ['journal_full'],
    }),
    press('refuses while the outbox is full', {
      seeds: [...on(), seeds.stream(keys.outbox(partition), limits.outbox_length_max)],
      answer: ['outbox_full'],
    }),
    press('reports a cold chat as missing', {
      seeds: [open(partition)],
      answer: ['chat_missing', issued('T')],
    }),
    press('reports a cold message as missing', { seeds: at, answer: ['message_missing', issued('T')] }),
    press('refuses an id that was not given out', { seeds: on(), answer: ['not_found'] }, {}, 8),
    press('refuses a deleted message', { seeds: on({ kind: messageKinds.deleted }), answer: ['not_found'] }),
    press('refuses a button that the message does not have', {
      seeds: on({ markup: keyboard('stop') }),
      answer: ['no_button'],
    }),
    press('refuses a message that is no inline message', { seeds: on({ flags: 0 }), answer: ['no_button'] }),
    ...(isDirect
      ? [
          press('refuses a user who blocked the bot of the chat', {
            seeds: [...on(), seeds.chat(chat, { t: 'blocked' })],
            answer: ['blocked'],
          }),
        ]
      : [
          press('reports a cold member as missing', {
            seeds: [open(partition), seeds.chat(chat)],
            answer: ['member_missing', issued('T')],
          }),
          press('refuses a former member', {
            seeds: [...on(), seeds.member(user, 'left')],
            answer: ['not_member', 'group'],
          }),
        ]),
  ];
}

const cached = [seeds.text(`${cache}all`, '5'), anAnswer()];

export const inlineCases: readonly Case[] = [
  find('finds the answer for the person before that for everybody', {
    seeds: [
      ...ready,
      seeds.text(`${cache}own`, '5'),
      seeds.text(`${cache}all`, '6'),
      anAnswer(),
      seeds.hash(`${answers}6`, { l: 'other' }),
    ],
    answer: ['ok', '5', 'LL'],
    changes: [],
  }),
  find('ignores a cached answer that was removed', {
    seeds: [...ready, seeds.text(`${cache}own`, '5')],
    answer: ['ok', '', ''],
    changes: [],
  }),
  find('demands a check of the person under a write policy', {
    seeds: [open(), seeds.queue({ wp: 'owner' }), ...cached],
    answer: ['unchecked', '5'],
  }),
  find(
    'finds an answer for a person who was checked for the present policy',
    { seeds: [open(), seeds.queue({ wp: 'owner' }), ...cached], answer: ['ok', '5', 'LL'], changes: [] },
    ['all'],
    '5',
  ),
  find('finds nothing without a queue', { seeds: [open(), ...cached], answer: ['ok', '', ''], changes: [] }),
  find('finds nothing while the copy of the write policy is outdated', {
    seeds: [open(), seeds.queue({ wi: 1 }), ...cached],
    answer: ['ok', '', ''],
    changes: [],
  }),
  find('refuses a different run id', {
    seeds: [seeds.open(home, { run: 'other' }), ...cached],
    answer: ['stale_run'],
  }),
  ask('stores and queues a query for half a minute', {
    seeds: ready,
    answer: ['ok', asked, 0],
    changes: [`inline_query:${asked}`, 'meta', state, stream, 'req:r'],
    async after(client) {
      expect(unpack((await client.getBuffer(queries + asked)) as Buffer)).toEqual([
        ...[`${bot}`, `${user}`, 'cats', 'own', 'all'],
      ]);
      expect(await client.pttl(queries + asked)).toBeGreaterThan(limits.inline_query_age_ms_max - 5_000);
      expect(await client.pttl(queries + asked)).toBeLessThanOrEqual(limits.inline_query_age_ms_max);
    },
  }),
  ask('answers an already applied request again', {
    seeds: [...ready, seeds.text(keys.request(home, 'r'), '123')],
    answer: ['ok', '123', 0],
    changes: [],
  }),
  ask('refuses a different run id', { seeds: ready, answer: ['stale_run'] }, { run: 'other' }),
  ask('refuses while the journal is full', { seeds: [...ready, ...full()], answer: ['journal_full'] }),
  ask('reports a missing queue', { seeds: [open()], answer: ['queue_missing'] }),
  ask('reports an outdated write policy', {
    seeds: [open(), seeds.queue({ wi: 1 })],
    answer: ['access_missing', incarnation],
  }),
  ask('demands a check of the person under a write policy', {
    seeds: [open(), seeds.queue({ wp: 'owner' })],
    answer: ['unchecked', '5'],
  }),
  ask(
    'accepts a person who was checked for the present policy',
    {
      seeds: [open(), seeds.queue({ wp: 'owner' })],
      answer: ['ok', asked, 0],
      changes: [`inline_query:${asked}`, 'meta', state, stream, 'req:r'],
    },
    {},
    '5',
  ),
  ask('refuses a bot with too many bytes of pending updates', {
    seeds: [open(), seeds.queue({ bytes: limits.inline_pending_bytes_max })],
    answer: ['behind'],
  }),
  ask('refuses a bot with too many pending updates', {
    seeds: [...ready, seeds.stream(keys.queue(bot), limits.inline_pending_max)],
    answer: ['behind'],
  }),
  ask('refuses a bot that does not receive inline queries', {
    seeds: [open(), seeds.queue({ mask: 1 })],
    answer: ['not_asked'],
  }),
  ask('refuses a query for a webhook route with too many pending updates', {
    seeds: [...routed(), seeds.stream(keys.queue(first), limits.inline_pending_max)],
    answer: ['behind'],
  }),
  ask('refuses a query for a webhook route with too many bytes of pending updates', {
    seeds: routed({}, { bytes: limits.inline_pending_bytes_max }),
    answer: ['behind'],
  }),
  ask('queues a query for a webhook route although the bot’s own queue is long', {
    seeds: [...routed(), seeds.stream(keys.queue(bot), limits.inline_pending_max)],
    answer: ['ok', asked, 0],
    changes: [`inline_query:${asked}`, 'meta', state, `queue_state:${first}`, `queue:${first}`, 'req:r'],
  }),
  ask('refuses a query that neither a webhook route nor the bot’s own queue takes', {
    seeds: [...routed({ own: 1 }), seeds.hash(keys.routes(bot), { list: listOf({ isListed: true }) })],
    answer: ['not_asked'],
  }),
  ask('refuses a query if only a webhook route with commands takes inline queries', {
    seeds: [...routed({ own: 1 }), seeds.hash(keys.routes(bot), { list: orders })],
    answer: ['not_asked'],
  }),
  ask('queues a query for the bot itself although the queue of a webhook route with commands is long', {
    seeds: [
      ...[...routed(), seeds.hash(keys.routes(bot), { list: orders })],
      seeds.stream(keys.queue(first), limits.inline_pending_max),
    ],
    answer: ['ok', asked, 0],
    changes: [`inline_query:${asked}`, 'meta', state, stream, 'req:r'],
  }),
  answer('stores the answer, and caches it for everybody', {
    seeds: openQuery,
    answer: ['ok'],
    changes: [...stored, `inline_cache:${bot}:all`],
    async after(client) {
      expect(await client.hgetall(`${answers}5`)).toEqual({
        ...{ l: 'LL', q: 'cats', b: `${bot}`, u: '', 'r:a': 'AAA' },
      });
      expect(await client.get(kept.bytes)).toBe('10');
      for (const key of [`${answers}5`, kept.bytes, kept.answers, `${cache}all`]) {
        expect(await client.pttl(key), key).toBeGreaterThan(295_000);
        expect(await client.pttl(key), key).toBeLessThanOrEqual(300_000);
      }
    },
  }),
  answer(
    'caches a personal answer for the person',
    {
      seeds: openQuery,
      answer: ['ok'],
      changes: [...stored, `inline_cache:${bot}:own`],
      after: async (client) => expect(await client.hget(`${answers}5`, 'u')).toBe(`${user}`),
    },
    { personal: true },
  ),
  answer(
    'keeps an answer without cache time for the choice of the person',
    {
      seeds: openQuery,
      answer: ['ok'],
      changes: stored,
      async after(client) {
        expect(await client.hget(`${answers}5`, 'u')).toBe(`${user}`);
        expect(await client.pttl(`${answers}5`)).toBeGreaterThan(limits.inline_choice_ms - 5_000);
      },
    },
    { cache_s: '0' },
  ),
  answer('removes the oldest answers and their cache keys to make room', {
    seeds: [
      ...openQuery,
      (client) => client.rpush(kept.answers, '1:7:one', '2:100:two', '3:50:'),
      seeds.text(kept.bytes, `${limits.inline_answers_bytes_max + 7}`, 90_000),
      ...[1, 2, 3].map((id) => seeds.hash(`${answers}${id}`, { l: 'x' })),
      seeds.text(`${cache}one`, '1', 90_000),
      // The key refers to a newer answer, so the script keeps the key.
      seeds.text(`${cache}two`, '3', 90_000),
    ],
    answer: ['ok'],
    changes: [
      ...[...stored, `inline_cache:${bot}:all`, `inline_cache:${bot}:one`],
      ...['inline_answer:1', 'inline_answer:2'],
    ],
    async after(client) {
      expect(await client.lrange(kept.answers, 0, -1)).toEqual(['3:50:', '5:10:all']);
      expect(await client.get(kept.bytes)).toBe(`${limits.inline_answers_bytes_max - 90}`);
    },
  }),
  answer('removes an answer when there are too many', {
    seeds: [
      ...openQuery,
      (client) =>
        client.rpush(
          kept.answers,
          ...Array.from({ length: limits.inline_answers_max }, (_, i) => `${100 + i}:1:`),
        ),
      seeds.text(kept.bytes, `${limits.inline_answers_max}`, 90_000),
      seeds.hash(`${answers}100`, { l: 'x' }),
    ],
    answer: ['ok'],
    changes: [...stored, `inline_cache:${bot}:all`, 'inline_answer:100'],
    after: async (client) => expect(await client.llen(kept.answers)).toBe(limits.inline_answers_max),
  }),
  answer('answers an already applied request again', {
    seeds: [open(), seeds.text(keys.request(home, 'r'), '1')],
    answer: ['ok'],
    changes: [],
  }),
  answer('refuses a different run id', { seeds: openQuery, answer: ['stale_run'] }, { run: 'other' }),
  answer('refuses a query that has ended', { seeds: [open()], answer: ['too_old'] }),
  answer('refuses the query of another bot', {
    seeds: [open(), seeds.text(`${queries}5`, question(77))],
    answer: ['too_old'],
  }),
  read('returns the list', { seeds: [anAnswer()], answer: ['ok', 'LL', `${bot}`, 'cats'], changes: [] }),
  read(
    'returns the message of a result',
    { seeds: [anAnswer({ u: `${user}` })], answer: ['ok', 'AAA', `${bot}`, 'cats'], changes: [] },
    { field: 'r:a' },
  ),
  read(
    'returns nothing for an unknown result',
    { seeds: [anAnswer()], answer: ['ok', '', `${bot}`, 'cats'], changes: [] },
    { field: 'r:b' },
  ),
  read('refuses an answer for another person', { seeds: [anAnswer({ u: '77' })], answer: ['no_answer'] }),
  read('reports an answer that has ended', { answer: ['no_answer'] }),
  tell('queues the choice of a person', {
    seeds: ready,
    answer: ['ok', 0],
    changes: ['meta', state, stream, 'req:r'],
  }),
  tell('answers an already applied request again', {
    seeds: [...ready, seeds.text(keys.request(home, 'r'), '1')],
    answer: ['ok', 0],
    changes: [],
  }),
  tell('refuses a different run id', { seeds: ready, answer: ['stale_run'] }, { run: 'other' }),
  tell('refuses while the journal is full', { seeds: [...ready, ...full()], answer: ['journal_full'] }),
  tell('reports a missing queue', { seeds: [open()], answer: ['queue_missing'] }),
  ...presses(direct),
  ...presses(group),
];

/**
 * Defines the size limit of each list response and how the tests fill the list. Every endpoint and method that returns
 * a list needs an entry.
 */
import pg from 'pg';
import { expect } from 'vitest';
import { limits } from '../../src/limits.js';
import { reactionEmoji } from '../../src/rules/emoji.js';
import { rightNames } from '../../src/rules/rights.js';
import { emojiColumn, messageKinds, pack, packContent, packMessage } from '../../src/store/core/codec.js';
import { makeKeys, partitionOfPost, postNumber } from '../../src/store/core/keys.js';
import { packUpdate } from '../../src/store/updates/update_record.js';
import { openAnywhere } from '../support/cluster.js';
import {
  type Answer,
  itemsOf,
  resultOf,
  type Service,
  type TestBot,
  type TestUser,
} from '../support/service.js';

export interface World {
  readonly service: Service;
  readonly owner: TestUser;
  readonly bot: TestBot;
  /** People with the longest names, ordered by id. */
  readonly people: ReadonlyArray<{
    readonly id: number;
    readonly username: string;
    readonly external_id: string;
  }>;
  /** A group, and its messages of the maximum size, newest first. */
  readonly group: number;
  readonly messages: readonly number[];
  /** A channel, and its posts of nearly the maximum size, newest first. */
  readonly channel: number;
  readonly posts: ReadonlyArray<{ readonly id: number; readonly message_id: number }>;
  sql(text: string, values?: readonly unknown[]): Promise<ReadonlyArray<Record<string, never>>>;
}

export interface Filled {
  readonly path: string;
  readonly by?: { readonly token: string };
  /** The expected keys of all items, as `keyOf` returns them, in any order. */
  readonly keys: readonly unknown[];
}
// biome-ignore lint/suspicious/noExplicitAny: items of every shape
type Item = any;

interface PageRow {
  readonly page: (world: World) => Promise<Filled>;
  readonly keyOf: (item: Item) => unknown;
}

interface AnswerRow {
  readonly bytes: number;
  readonly items?: number;
  /** True if the list reaches its byte limit before it has `items` items. */
  readonly cut?: true;
  /**
   * Makes the call with the largest possible answer. Absent if the limit is not tested: `why` then gives the reason.
   */
  readonly answer?: (world: World) => Promise<Answer>;
  readonly listOf?: (result: Item) => readonly unknown[];
  readonly why?: string;
}
export type Row = PageRow | AnswerRow;

const kib = 1024;
const wide = '🐦';
/** A character that takes one byte in UTF-8 and six bytes in JSON. */
const control = '\u0001';
const largeText = `x${control.repeat(4_094)}x`;
const keyboard = {
  inline_keyboard: Array.from({ length: 100 }, () => [
    { text: `x${control.repeat(50)}x`, callback_data: control.repeat(64) },
  ]),
};
const large = { text: largeText, reply_markup: keyboard };

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  return client;
}

/** Waits until the messages are in Postgres, where a search finds them. */
const untilWritten = ({ sql }: World, chat: number, ids: readonly number[]) =>
  expect
    .poll(async () => {
      const query = 'select message_id from messages where chat_id = $1 and message_id = any($2)';
      return (await sql(query, [chat, ids])).length;
    })
    .toBe(ids.length);

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
const admin = (w: World) => ({ token: w.service.adminToken });
const idOf = ({ id }: Item) => Number(id);

async function manyBots(
  { sql, owner }: World,
  name: string,
  count: number,
  by = owner.id,
): Promise<number[]> {
  const rows = await sql(
    `insert into bots (owner_id, username, name, token_hmac, token_box)
     select $1, rpad($2 || n || '_', 28, 'x') || '_bot', repeat('${wide}', 64), sha256(($2 || n)::bytea), ''
       from generate_series(1, $3::int) n returning id`,
    [by, name, count],
  );
  return rows.map(({ id }) => Number(id));
}

/**
 * Makes an update with a message that replies to another message. The texts of both messages have the maximum length.
 */
function deadUpdate(bot: number, user: number): Buffer {
  const who = { id: user, n: 'x' };
  const record = packMessage({
    ...{ version: 1, date: 1, editedAt: 0, sender: user, kind: messageKinds.text, flags: 0 },
    ...{ content: { text: largeText }, markup: null, origin: { from: who, reply: 1 }, post: 0 },
  });
  const fields = {
    ...{ k: 'message', c: `${bot}.${user}`, m: '7', r: record, f: pack(who), p: pack(who), y: record },
    ...{ x: '', w: 'expired', d: '1000' },
  };
  return packUpdate(
    Object.entries(fields).flatMap(([name, value]) => [Buffer.from(name), Buffer.from(value)]),
  );
}

/** Inserts failed delivery attempts of a bot, each with a receiver's answer of the maximum size. */
const failures = `
  insert into delivery_failures (bot_id, id, update_id, at, status, error, latency_ms, answer, tries)
  select $1, n, n, now(), 502, 'Wrong response from the webhook: 502 Bad Gateway', 5, repeat(E'\\x01', 1024), 1
    from generate_series(1, $2::int) n`;

const letters = 110;
/** Inserts dead letters for two lists: the list of the owner and the list of the operators. */
async function fillLetters({ sql, bot, owner }: World): Promise<number[]> {
  await sql(
    `insert into dead_updates (bot_id, update_id, version, record)
     select $1, n, 1, $2 from generate_series(1, ${letters}) n on conflict do nothing`,
    [bot.id, deadUpdate(bot.id, owner.id)],
  );
  return numbers(letters);
}

/** Makes a status report of a process. The report has an entry for every call that a front counts. */
const nodeText = (n: number) => {
  const buckets = Array.from({ length: 16 }, () => 123_456_789);
  const call = { ok: 1, refused: 1, slowed: 1, failed: 1, gone: 1, times: buckets };
  return JSON.stringify({
    ...{
      id: `n${n}`,
      role: 'front',
      host: 'h'.repeat(60),
      pid: n,
      version: '0.1.0',
      since_ms: n,
      state: 'serving',
    },
    ...{ loop_p99_ms: 1, loop_max_ms: 1, cpu: 0.5, memory_bytes: 1, scripts: buckets },
    front: {
      ...{ open: 1, polls: 1, streams: 1 },
      calls: numbers(40).map((i) => ({ call: `GET /api/${'x'.repeat(50)}${i}`, ...call })),
    },
  });
};

/** One entry of the operators' history, with a value for every figure that processes report. */
const fullPoint = [
  ...['calls', 'refused', 'slowed', 'failed', ...Array.from({ length: 16 }, (_, i) => `t${i}`)],
  ...['reserved', 'port', 'unresolved', 'connect', 'tls', 'timeout', 'closed', 'malformed', 'busy'].map(
    (fault) => `d:${fault}`,
  ),
  ...['delivered', '1xx', '3xx', '4xx', '5xx', '9xx'].map((status) => `d:${status}`),
]
  .map((name) => `+${name} 1234567`)
  .concat('lag_ms 1234567', 'redis_bytes 123456789012')
  .join(' ');

export const message: AnswerRow = {
  bytes: 256 * kib,
  answer: ({ service, bot, group, messages }) =>
    service.bot(bot, 'sendMessage', {
      ...{ chat_id: group, ...large },
      reply_parameters: { message_id: messages.at(-1) },
    }),
};
const oneMessage: AnswerRow = { bytes: message.bytes, why: 'one message, as `sendMessage` returns it' };
const onePoll: AnswerRow = {
  bytes: 16 * kib,
  answer: async ({ service, bot, group }) => {
    const sent = await resultOf(
      service.bot(bot, 'sendPoll', {
        ...{ chat_id: group, question: wide.repeat(300), options: numbers(12).map(() => wide.repeat(100)) },
        ...{ type: 'quiz', correct_option_id: 0, explanation: wide.repeat(200) },
      }),
    );
    return service.bot(bot, 'stopPoll', { chat_id: group, message_id: sent.message_id });
  },
};
const reactions: AnswerRow = {
  bytes: 64 * kib,
  answer: async (w) => {
    const path = `/api/posts/${w.posts[0]?.id}/reactions`;
    for (const emoji of emojiOf(19)) await w.service.app(w.owner, 'POST', path, { emoji });
    return w.service.app(w.owner, 'POST', path, { emoji: '❤' });
  },
};
const emojiOf = (count: number) => Array.from({ length: count }, (_, n) => String.fromCodePoint(0x1f400 + n));
const onePost: AnswerRow = { bytes: 96 * kib, why: 'one message and its reactions, up to 20 of each person' };
const references: AnswerRow = { bytes: 4 * kib, why: 'ids of 100 messages' };

const direct: Readonly<Record<string, Row>> = {
  'GET /api/me/tokens': {
    keyOf: idOf,
    page: async ({ sql, owner }) => {
      await sql(
        `insert into user_tokens (user_id, hmac, name)
         select $1, sha256(('list' || n)::bytea), rpad(n::text, 64, '${wide}') from generate_series(1, 99) n`,
        [owner.id],
      );
      const rows = await sql('select id from user_tokens where user_id = $1', [owner.id]);
      return { path: '/api/me/tokens', keys: rows.map(idOf) };
    },
  },
  'GET /api/me/bots': {
    keyOf: idOf,
    page: async (w) => {
      await manyBots(w, 'own', 900);
      const rows = await w.sql('select id from bots where owner_id = $1', [w.owner.id]);
      return { path: '/api/me/bots', keys: rows.map(idOf) };
    },
  },
  'GET /api/me/transfers': {
    keyOf: ({ bot_id }) => bot_id,
    page: async (w) => {
      const [from] = w.people;
      const ids = await manyBots(w, 'offered', 400, from?.id);
      await w.sql(
        `insert into bot_transfers (bot_id, from_id, to_id, expires_at)
         select unnest($1::bigint[]), $2, $3, now() + interval '1 day'`,
        [ids, from?.id, w.owner.id],
      );
      return { path: '/api/me/transfers', keys: ids };
    },
  },
  'GET /api/me/invitations': {
    keyOf: ({ chat }) => chat.id,
    page: async ({ sql, owner, people }) => {
      const made = await sql(
        `with made as (
           insert into chats (type, title, username, creator_id)
           select 'group', repeat('${wide}', 128), rpad('asked_' || n || '_', 32, 'x'), $1 from generate_series(1, 100) n
           returning id)
         insert into chat_invitations (user_id, chat_id, by_id)
         select $2, id, ($3::bigint[])[1 + abs(id) % 10] from made returning chat_id`,
        [people[0]?.id, owner.id, people.slice(0, 10).map(idOf)],
      );
      return { path: '/api/me/invitations', keys: made.map(({ chat_id }) => Number(chat_id)) };
    },
  },
  'GET /api/me/drafts': {
    keyOf: ({ chat_id }) => chat_id,
    page: async ({ service, owner }) => {
      const chats = numbers(limits.person_drafts_max).map((n) => -n);
      const text = control.repeat(Math.floor(limits.person_drafts_bytes_max / chats.length));
      const client = openAnywhere(service.redis);
      await client.hset(
        makeKeys(64).personDrafts(owner.id),
        ...chats.flatMap((chat) => [String(chat), `1 ${text}`]),
      );
      client.disconnect();
      return { path: '/api/me/drafts', keys: chats };
    },
  },
  'GET /api/me/blocked_people': {
    keyOf: ({ user }) => user.id,
    page: async ({ sql, owner, people }) => {
      await sql(`insert into person_blocks (user_id, blocked_id) select $1, unnest($2::bigint[])`, [
        owner.id,
        people.map(idOf),
      ]);
      return { path: '/api/me/blocked_people', keys: people.map(idOf) };
    },
  },
  'GET /api/chats/{chat_id}/invite_links': {
    keyOf: idOf,
    page: async ({ service, sql, owner, people }) => {
      const group = await service.newGroup(owner, 'Many links');
      const rows = await sql(
        `insert into invite_links (chat_id, code, creator_id, is_primary, creates_join_request, name)
         select $1::bigint, $1::bigint || '_' || n, ($2::bigint[])[n], false, false, repeat('${wide}', 32)
           from generate_series(1, 101) n returning id`,
        [group, people.map(idOf)],
      );
      return { path: `/api/chats/${group}/invite_links`, keys: rows.map(({ id }) => Number(id)) };
    },
  },
  'GET /api/chats/{chat_id}/scheduled_posts': {
    keyOf: idOf,
    page: async ({ sql, owner, channel }) => {
      const rows = await sql(
        `insert into scheduled_posts (chat_id, user_id, content, publish_at, next_at)
         select $1, $2, $3, now() + interval '1 day', now() + interval '1 day' from generate_series(1, 101)
         returning id`,
        [channel, owner.id, packContent({ text: largeText })],
      );
      return { path: `/api/chats/${channel}/scheduled_posts`, keys: rows.map(idOf) };
    },
  },
  'GET /api/chats/{chat_id}/join_requests': {
    keyOf: ({ user }) => user.id,
    page: async ({ service, sql, owner, people }) => {
      const group = await service.newGroup(owner, 'Many requests');
      await sql('insert into join_requests (chat_id, user_id) select $1, unnest($2::bigint[])', [
        group,
        people.map(idOf),
      ]);
      return { path: `/api/chats/${group}/join_requests`, keys: people.map(idOf) };
    },
  },
  'GET /api/chats': {
    keyOf: idOf,
    page: async ({ service, sql }) => {
      const person = await service.newUser('in_many');
      const rows = await sql(
        `with made as (
           insert into chats (type, title, username, creator_id)
           select 'group', repeat('${wide}', 128), rpad('in_' || n || '_', 32, 'x'), $1 from generate_series(1, 300) n
           returning id)
         insert into chat_members (chat_id, member_id, is_bot, status)
         select id, $1, false, 'creator' from made returning chat_id`,
        [person.id],
      );
      return { path: '/api/chats', by: person, keys: rows.map(({ chat_id }) => Number(chat_id)) };
    },
  },
  'GET /api/chats/{chat_id}/members': {
    keyOf: ({ user }) => user.id,
    page: async ({ service, sql, owner, people }) => {
      const group = await service.newGroup(owner, 'People');
      await sql(
        `insert into chat_members (chat_id, member_id, is_bot, status, rights)
         select $1, unnest($2::bigint[]), false, 'administrator', $3`,
        [group, people.map(idOf), Object.fromEntries(rightNames.map((name) => [name, true]))],
      );
      return { path: `/api/chats/${group}/members`, keys: [owner.id, ...people.map(idOf)] };
    },
  },
  'GET /api/chats/{chat_id}/messages': {
    // Ignores the group's service messages, because the expected keys in `messages` do not contain them.
    keyOf: ({ message_id, group_chat_created, new_chat_members }) =>
      group_chat_created || new_chat_members ? null : message_id,
    page: async ({ group, messages }) => ({ path: `/api/chats/${group}/messages`, keys: messages }),
  },
  'GET /api/chats/{chat_id}/search': {
    keyOf: ({ message_id }) => message_id,
    page: async (w) => {
      await untilWritten(w, w.group, w.messages);
      // Every large message contains the letter for which the test searches.
      return { path: `/api/chats/${w.group}/search?query=X`, keys: w.messages };
    },
  },
  'GET /api/search/messages': {
    keyOf: ({ message_id, chat }) => `${chat.id}_${message_id}`,
    page: async (w) => {
      const person = await w.service.newUser('searching');
      const bots = await Promise.all(numbers(12).map((n) => w.service.newBot(w.owner, `found_${n}`)));
      const keys: string[] = [];
      for (const bot of bots) {
        const group = await w.service.newGroup(person, 'Found', [bot]);
        const sent: number[] = [];
        for (let n = 0; n < 3; n++)
          sent.push(
            (await resultOf(w.service.bot(bot, 'sendMessage', { chat_id: group, ...large }))).message_id,
          );
        await untilWritten(w, group, sent);
        // A search of all chats finds at most three messages per chat.
        keys.push(...sent.map((id) => `${group}_${id}`));
      }
      return { path: '/api/search/messages?query=X', by: person, keys };
    },
  },
  'GET /api/chats/{chat_id}/reply_keyboard': {
    bytes: message.bytes,
    answer: async ({ service, bot, owner, group, messages }) => {
      const reply_markup = { keyboard: Array.from({ length: 100 }, () => [control.repeat(150)]) };
      const reply_parameters = { message_id: messages.at(-1) };
      const text = { chat_id: group, text: largeText };
      await resultOf(service.bot(bot, 'sendMessage', { ...text, reply_markup, reply_parameters }));
      return service.app(owner, 'GET', `/api/chats/${group}/reply_keyboard`);
    },
  },
  'GET /api/chats/{chat_id}/draft': {
    bytes: 31 * kib,
    answer: async ({ service, bot, owner }) => {
      await service.openChat(owner, bot);
      await resultOf(
        service.bot(bot, 'sendMessageDraft', { chat_id: owner.id, draft_id: 1, text: largeText }),
      );
      return service.app(owner, 'GET', `/api/chats/${bot.id}/draft`);
    },
  },
  'GET /api/chats/{chat_id}/posts': {
    keyOf: idOf,
    page: async ({ channel, posts }) => ({ path: `/api/chats/${channel}/posts`, keys: posts.map(idOf) }),
  },
  'GET /api/posts/{post}/reactions': {
    keyOf: ({ user_id }) => user_id,
    page: async ({ sql, people, posts }) => {
      const post = posts.at(-1)?.id ?? 0;
      const emoji = reactionEmoji('❤');
      await sql(
        `insert into post_reactions (partition, number, user_id, emoji, version, record)
         select $1, $2, u.id, $3, u.n, u.record
           from unnest($4::bigint[], $5::bytea[]) with ordinality as u (id, record, n)`,
        [
          ...[partitionOfPost(post), postNumber(post), emojiColumn(emoji), people.map(idOf)],
          people.map(({ external_id }) =>
            pack([emoji, 1_700_000_000, Buffer.from(external_id.replaceAll('-', ''), 'hex')]),
          ),
        ],
      );
      return { path: `/api/posts/${post}/reactions`, keys: people.map(({ external_id }) => external_id) };
    },
  },
  'GET /api/me/bots/{bot_id}/audit': {
    keyOf: idOf,
    page: async ({ sql, bot }) => {
      await sql(
        `insert into bot_audit (bot_id, actor_type, event, details)
         select $1, 'bot', 'texts_changed', '{"texts": ["name", "description", "short_description"]}'
           from generate_series(1, 300)`,
        [bot.id],
      );
      const rows = await sql('select id from bot_audit where bot_id = $1', [bot.id]);
      return { path: `/api/me/bots/${bot.id}/audit`, keys: rows.map(idOf) };
    },
  },
  'GET /api/me/bots/{bot_id}/webhook/deliveries': {
    keyOf: ({ update_id }) => update_id,
    page: async ({ sql, bot }) => {
      await sql(failures, [bot.id, 250]);
      return { path: `/api/me/bots/${bot.id}/webhook/deliveries`, keys: numbers(250) };
    },
  },
  'GET /api/me/bots/{bot_id}/webhook/dead_letters': {
    keyOf: ({ update_id }) => update_id,
    page: async (w) => ({
      path: `/api/me/bots/${w.bot.id}/webhook/dead_letters`,
      keys: await fillLetters(w),
    }),
  },
  'GET /api/admin/bots/{id}/dead_letters': {
    keyOf: ({ update_id }) => update_id,
    page: async (w) => ({
      path: `/api/admin/bots/${w.bot.id}/dead_letters`,
      by: admin(w),
      keys: await fillLetters(w),
    }),
  },
  'GET /api/admin/accounts': {
    keyOf: idOf,
    page: async (w) => {
      const people = await w.sql(
        `insert into users (username, first_name, last_name)
         select rpad('sought_' || n || '_', 32, 'x'), repeat('${wide}', 64), repeat('${wide}', 64)
           from generate_series(1, 150) n returning id`,
      );
      const bots = await manyBots(w, 'sought_', 100, w.people[2]?.id);
      return { path: '/api/admin/accounts?query=OUGHT_', by: admin(w), keys: [...people.map(idOf), ...bots] };
    },
  },
  'GET /api/admin/users/{id}/bots': {
    keyOf: idOf,
    page: async (w) => ({
      path: `/api/admin/users/${w.people[3]?.id}/bots`,
      by: admin(w),
      keys: await manyBots(w, 'theirs', 250, w.people[3]?.id),
    }),
  },
  'GET /api/admin/bots/{id}/attempts': {
    keyOf: ({ update_id }) => update_id,
    page: async (w) => {
      const [id] = await manyBots(w, 'tried', 1, w.people[4]?.id);
      await w.sql(failures, [id, 250]);
      return { path: `/api/admin/bots/${id}/attempts`, by: admin(w), keys: numbers(250) };
    },
  },
  'GET /api/admin/audit': {
    // Ignores entries that are not from this test. The audit log grows during the test, because it also logs the calls
    // that read it.
    keyOf: ({ token, target }) => (token === 'list' ? target : null),
    page: async (w) => {
      await w.sql(
        `insert into admin_calls (token, action, target, address, status)
         select 'list', 'POST /api/admin/users/{id}/suspension', rpad(n::text, 128, '${wide}'), '2001:db8::1', 200
           from generate_series(1, 250) n`,
      );
      const rows = await w.sql("select target from admin_calls where token = 'list'");
      return { path: '/api/admin/audit', by: admin(w), keys: rows.map(({ target }) => target) };
    },
  },
  'GET /api/admin/reserved_usernames': {
    keyOf: (name) => name,
    page: async (w) => {
      await w.sql(
        "insert into names (name, owner) select rpad('kept_' || n || '_', 32, 'x'), 0 from generate_series(1, 250) n",
      );
      const rows = await w.sql('select name from names where owner = 0');
      return { path: '/api/admin/reserved_usernames', by: admin(w), keys: rows.map(({ name }) => name) };
    },
  },

  'GET /api/admin/bots': {
    ...{ bytes: 64 * kib, items: 50, listOf: ({ items }) => items },
    answer: async (w) => {
      const ids = await manyBots(w, 'dead', 60, w.people[1]?.id);
      await w.sql(
        "insert into dead_updates (bot_id, update_id, version, record) select unnest($1::bigint[]), 1, 1, '\\x00'",
        [ids],
      );
      return w.service.app(admin(w), 'GET', '/api/admin/bots?order=dead_letters');
    },
  },
  'GET /api/admin/bots/{id}': {
    ...{ bytes: 32 * kib, items: 50, listOf: ({ outcomes }) => outcomes },
    answer: async (w) => {
      const [id] = await manyBots(w, 'failing', 1, w.people[5]?.id);
      await w.sql(failures, [id, 60]);
      await w.sql("update delivery_failures set error = rpad(error || id, 100, 'x') where bot_id = $1", [id]);
      return w.service.app(admin(w), 'GET', `/api/admin/bots/${id}`);
    },
  },
  'GET /api/admin/overview': {
    ...{ bytes: 768 * kib, items: 500, listOf: ({ nodes }) => nodes },
    answer: async (w) => {
      const redis = openAnywhere(w.service.redis);
      const nodes = makeKeys(Number(w.service.env.PARTITIONS ?? 64)).nodes();
      for (const n of numbers(600)) await redis.hset(nodes, `n${n}`, `${Date.now()} ${nodeText(n)}`);
      const answer = await w.service.app(admin(w), 'GET', '/api/admin/overview');
      await redis.hdel(nodes, ...numbers(600).map((n) => `n${n}`));
      redis.disconnect();
      return answer;
    },
  },
  'GET /api/admin/history': {
    ...{ bytes: 512 * kib, items: 719, listOf: ({ points }) => points },
    answer: async (w) => {
      const { history_step_ms: step, history_points_max: places } = limits;
      const redis = openAnywhere(w.service.redis);
      const key = makeKeys(Number(w.service.env.PARTITIONS ?? 64)).figures();
      const current = Math.floor(Date.now() / step);
      // Fills the whole history up to the current entry. The service may begin another entry before it answers.
      const points = numbers(places).map((n) => [(current - places + n) % places, current - places + n]);
      await redis.hset(key, Object.fromEntries(points.map(([place, n]) => [place, `${n} ${fullPoint}`])));
      const answer = await w.service.app(admin(w), 'GET', '/api/admin/history');
      await redis.del(key);
      redis.disconnect();
      return answer;
    },
  },
  'GET /api/me/bots/{bot_id}': {
    bytes: 72 * kib,
    answer: async ({ service, owner, bot, people }) => {
      const path = `/api/me/bots/${bot.id}`;
      const codes = ['ru', 'en', 'uz', 'tg', 'hy', 'tt', 'kk'];
      const texts = (length: number) =>
        Object.fromEntries(['', ...codes].map((code) => [code, wide.repeat(length)]));
      await resultOf(
        service.app(owner, 'PATCH', path, {
          ...{ name: texts(64), description: texts(512), short_description: texts(120) },
        }),
      );
      const usernames = people.map(({ username }) => username);
      await resultOf(service.app(owner, 'PUT', `${path}/write_access`, { policy: 'selected', usernames }));
      return service.app(owner, 'GET', path);
    },
  },
  getMyCommands: {
    ...{ bytes: 130 * kib, items: 100, listOf: (result) => result },
    answer: async ({ service, bot }) => {
      const commands = numbers(100).map((n) => ({ command: `c${n}`, description: wide.repeat(256) }));
      await resultOf(service.bot(bot, 'setMyCommands', { commands }));
      return service.bot(bot, 'getMyCommands');
    },
  },
  getWebhookRoutes: {
    bytes: 32 * kib,
    why: 'up to ten routes: settings of 16 KiB in all, and less than 1 KiB of state for each',
  },
  'GET /api/me/sessions': {
    ...{ bytes: 8 * kib, items: 30, listOf: ({ items }) => items },
    answer: async ({ service, sql }) => {
      const person = await service.newUser('signed_in');
      await sql(
        `insert into user_tokens (user_id, hmac, agent, last_used_on)
         select $1, sha256(('session' || n)::bytea), 'Samsung Internet on Chrome OS', now() from generate_series(1, 30) n`,
        [person.id],
      );
      return service.app(person, 'GET', '/api/me/sessions');
    },
  },
  'GET /api/me/bots/{bot_id}/webhook/replays': {
    ...{ bytes: 16 * kib, items: 20, listOf: ({ items }) => items },
    answer: async ({ service, sql, owner, bot }) => {
      await sql(
        `insert into history_replays (bot_id, slot, from_update_id, last_update_id, ended_at, closed, reached)
         select $1, 1, 1e14, 1e14, now(), true, 1e14 from generate_series(1, 25)`,
        [bot.id],
      );
      return service.app(owner, 'GET', `/api/me/bots/${bot.id}/webhook/replays`);
    },
  },
  'GET /api/suggestions': {
    ...{
      bytes: 24 * kib,
      why: 'up to 10 bots and chats: a name, a title, a short description and a picture',
    },
  },
  'GET /api/me/bots/{bot_id}/webhook/routes': {
    bytes: 32 * kib,
    why: 'what getWebhookRoutes returns',
  },
  getStickerSet: {
    bytes: 120 * kib,
    why: 'up to 120 stickers of less than 1 KiB each: two ids, an emoji and the name of the set',
  },
  getUserProfilePhotos: {
    ...{ bytes: 4 * kib, why: 'a bot has at most one picture, in two sizes' },
  },
  'GET /api/bots/{username}': {
    bytes: 136 * kib,
    answer: ({ service, owner, bot }) => service.app(owner, 'GET', `/api/bots/${bot.username}`),
  },
  getChatAdministrators: {
    ...{ bytes: 128 * kib, items: 100, listOf: (result) => result },
    answer: async ({ service, sql, owner, bot, people }) => {
      const group = await service.newGroup(owner, 'Many administrators', [bot]);
      const rights = Object.fromEntries(rightNames.map((name) => [name, true]));
      await sql(
        `insert into chat_members (chat_id, member_id, is_bot, status, rights)
         select $1, unnest($2::bigint[]), false, 'administrator', $3`,
        [group, people.slice(0, 98).map(idOf), rights],
      );
      const change = { status: 'administrator', rights };
      await resultOf(service.app(owner, 'PUT', `/api/chats/${group}/members/${bot.id}`, change));
      return service.bot(bot, 'getChatAdministrators', { chat_id: group });
    },
  },
  getUpdates: {
    ...{ bytes: 4 * 1024 * kib + kib, items: 100, listOf: (result) => result, cut: true },
    answer: async ({ service, owner }) => {
      const hearer = await service.newBot(owner, 'hearer');
      await service.openChat(owner, hearer);
      const sent: number[] = [];
      for (let n = 0; n < 110; n++) {
        const body = { text: largeText, reply_to_message_id: sent.at(-1) };
        const path = `/api/chats/${hearer.id}/messages`;
        sent.push((await resultOf(service.app(owner, 'POST', path, body))).message_id);
      }
      const seen: number[] = [];
      let first: Answer | undefined;
      for (let offset = 0; seen.length < 111; ) {
        const answer = await service.bot(hearer, 'getUpdates', { offset, limit: 100 });
        first ??= answer;
        const updates: Item[] = await resultOf(answer);
        if (updates.length === 0) throw new Error(`${seen.length} of 111 updates came`);
        seen.push(...updates.map((update) => update.message.message_id));
        offset = updates.at(-1).update_id + 1;
      }
      if (new Set(seen).size !== seen.length) throw new Error('an update came twice');
      return first as Answer;
    },
  },
  getChat: {
    bytes: 256 * kib,
    answer: async ({ service, bot, owner, group, messages }) => {
      await resultOf(service.app(owner, 'POST', `/api/chats/${group}/pin`, { message_id: messages[0] }));
      return service.bot(bot, 'getChat', { chat_id: group });
    },
  },
  sendMessage: message,
  sendMediaGroup: {
    ...{ bytes: 10 * message.bytes, items: 10, listOf: (result) => result },
    answer: ({ service, bot, group, messages }) =>
      service.bot(bot, 'sendMediaGroup', {
        chat_id: group,
        media: numbers(10).map((n) => ({
          ...{ type: 'photo', media: `https://example.org/${n}.jpg`, caption: wide.repeat(1_024) },
        })),
        reply_parameters: { message_id: messages.at(-1) },
      }),
  },
  'POST /api/chats/{chat_id}/albums': {
    ...{ bytes: 10 * message.bytes, items: 10, listOf: (result) => result },
    answer: ({ service, owner, group, messages }) =>
      service.app(owner, 'POST', `/api/chats/${group}/albums`, {
        media: numbers(10).map((n) => ({
          ...{ type: 'photo', media: `https://example.org/${n}.jpg`, caption: wide.repeat(1_024) },
        })),
        reply_to_message_id: messages.at(-1),
      }),
  },
  copyMessages: {
    ...{ bytes: references.bytes, items: 100, listOf: (result) => result },
    answer: async ({ service, bot, owner }) => {
      const small = await service.newGroup(owner, 'Small', [bot]);
      const message_ids = [];
      for (let n = 0; n < 100; n++) {
        const body = { chat_id: small, text: `${n}` };
        message_ids.push((await resultOf(service.bot(bot, 'sendMessage', body))).message_id);
      }
      return service.bot(bot, 'copyMessages', { chat_id: small, from_chat_id: small, message_ids });
    },
  },
  'POST /api/posts/{post}/reactions': reactions,
  'GET /api/posts/{post}': {
    bytes: onePost.bytes,
    answer: ({ service, owner, posts }) => service.app(owner, 'GET', `/api/posts/${posts[0]?.id}`),
  },
};

const all = (names: readonly string[], row: Row) => Object.fromEntries(names.map((name) => [name, row]));

export const rows: Readonly<Record<string, Row>> = {
  ...direct,
  ...all(
    [
      ...[
        'sendPhoto',
        'sendAnimation',
        'sendVideo',
        'sendAudio',
        'sendVoice',
        'sendDocument',
        'sendVideoNote',
        'sendSticker',
      ],
      ...['sendLocation', 'sendVenue', 'sendContact', 'sendDice', 'sendPoll'],
      ...[
        'forwardMessage',
        'editMessageText',
        'editMessageCaption',
        'editMessageMedia',
        'editMessageReplyMarkup',
        'editMessageLiveLocation',
        'stopMessageLiveLocation',
      ],
      ...['POST /api/bots/{username}/start', 'POST /api/chats/{chat_id}/messages'],
      'PATCH /api/chats/{chat_id}/messages/{message_id}',
      'POST /api/chats/{chat_id}/inline_result',
      'POST /api/chats/{chat_id}/scheduled_posts/{scheduled_post_id}/publish',
    ],
    oneMessage,
  ),
  ...all(
    [
      'POST /api/chats/{chat_id}/scheduled_posts',
      'PATCH /api/chats/{chat_id}/scheduled_posts/{scheduled_post_id}',
    ],
    { bytes: message.bytes, why: 'one text or caption and its entities, as in a message' },
  ),
  ...all(['forwardMessages', 'POST /api/chats/{chat_id}/forward'], references),
  stopPoll: onePoll,
  ...all(
    ['GET', 'POST'].map((verb) => `${verb} /api/chats/{chat_id}/messages/{message_id}/poll`),
    { bytes: onePoll.bytes, why: 'one poll, as `stopPoll` returns it' },
  ),
  ...all(['getPost', 'createPost', 'editPost'], onePost),
  ...all(
    [
      'DELETE /api/posts/{post}/reactions',
      ...['POST', 'DELETE'].map((verb) => `${verb} /api/posts/{post}/like`),
    ],
    { bytes: reactions.bytes, why: 'as `POST /api/posts/{post}/reactions`' },
  ),
  ...all(
    [
      'PATCH /api/me/bots/{bot_id}',
      ...['write_access', 'inline_mode'].map((what) => `PUT /api/me/bots/{bot_id}/${what}`),
    ],
    {
      ...{ bytes: 72 * kib, why: 'as `GET /api/me/bots/{bot_id}`' },
    },
  ),
  'POST /api/chats/{chat_id}/inline_query': {
    ...{ bytes: 1536 * kib, why: 'an answer of up to 256 KiB, whose bytes take up to six bytes in JSON' },
  },
  getWebhookInfo: { bytes: 8 * kib, why: 'a URL, an error and the kinds of updates' },
  'GET /api/me/bots/{bot_id}/webhook': { bytes: 8 * kib, why: 'as `getWebhookInfo`' },
  'POST /api/me/bots/{bot_id}/webhook/ping': {
    ...{
      bytes: 40 * kib,
      why: '2 KiB of an answer and 4 KiB of its headers, whose bytes take up to six bytes in JSON',
    },
  },
  'POST /api/leaks/report': { bytes: 1024 * kib, why: 'a label for each token of the report' },
  ...all(['GET /api/stream', 'GET /api/stream/posts', 'GET /api/me/export'], {
    ...{ bytes: 1024 * kib, why: 'a stream: the largest backlog of a reader before the stream is closed' },
  }),
  ...all(['GET /api/files/{file_id}', 'GET /api/chats/{chat_id}/scheduled_posts/{scheduled_post_id}/file'], {
    bytes: 50 * 1024 * kib,
    why: 'one stored file, sent as fast as the client reads',
  }),
};

export async function makeWorld(service: Service): Promise<World & { end(): Promise<void> }> {
  const client = await connect(service.databaseUrl);
  const sql: World['sql'] = async (text, values = []) => (await client.query(text, [...values])).rows;
  const owner = await service.newUser('owner');
  const bot = await service.newBot(owner, 'lister');
  const people = await sql(
    `insert into users (username, first_name, last_name)
     select rpad('person_' || n || '_', 32, 'x'), repeat('${wide}', 64), repeat('${wide}', 64)
       from generate_series(1, 1000) n returning id, username, external_id`,
  );
  await sql('insert into names (name, owner) select unnest($1::text[]), unnest($2::bigint[])', [
    ...[people.map(({ username }) => username), people.map(idOf)],
  ]);
  const group = await service.newGroup(owner, 'Large messages', [bot]);
  const messages: number[] = [];
  for (let n = 0; n < 110; n++) {
    const reply = n === 0 ? {} : { reply_parameters: { message_id: messages.at(-1) } };
    const sent = await resultOf(service.bot(bot, 'sendMessage', { chat_id: group, ...large, ...reply }));
    messages.unshift(sent.message_id);
  }
  const made = await resultOf(service.app(owner, 'POST', '/api/chats', { type: 'channel', title: 'Posts' }));
  for (let n = 0; n < 110; n++)
    await resultOf(service.app(owner, 'POST', `/api/chats/${made.id}/messages`, { text: largeText }));
  const posts = [];
  for (let before = 0; posts.length < 110; before = posts.at(-1).message_id) {
    const path = `/api/chats/${made.id}/posts?limit=100${before === 0 ? '' : `&before=${before}`}`;
    posts.push(...(await itemsOf(service.app(owner, 'GET', path))));
  }
  return {
    ...{ service, owner, bot, group, messages, channel: made.id, posts, sql },
    people: people as unknown as World['people'],
    end: () => client.end(),
  };
}

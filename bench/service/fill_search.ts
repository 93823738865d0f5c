/**
 * Fills Postgres with many messages for the search measurement. Writes rows in the flusher's format, but without Redis
 * and without calls.
 */
import type pg from 'pg';
import { openSession } from '../../src/postgres/session.js';
import type { Person } from './population.js';

/**
 * The number of large chats. Each large chat has a tenth of all messages, and the sizes of the other chats follow a
 * power law.
 */
export const large_chats = 3;
const words_per_language = 20_000;
const sentences = 200_000;
/** The messages cover this many partitions of 30 days. */
const partitions = 12;
const partition_days = 30;
const day_s = 86_400;

/** Consonants and vowels of each language. A consonant and a vowel form a syllable, and syllables form words. */
const languages: readonly (readonly [string, string])[] = [
  ['b c d f g h l m n p r s t v st tr', 'a e i o u ea ou'],
  ['б в г д ж з к л м н п р с т ш ст', 'а е и о у ы я'],
  ['б ғ д ж қ к л м н ң п р с т ш з', 'а ә і о ө ұ е'],
  ['բ գ դ զ լ կ հ մ ն պ ռ ս տ ր շ ծ', 'ա ե ի ո ու է օ'],
];

/** Returns a generator of pseudorandom numbers from 0 to 1. The sequence is the same in each run. */
function numbers(): () => number {
  let state = 12_345;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Returns the word at this rank in the list of words, which is sorted by frequency. The word is the rank written as a
 * number, with syllables as digits, so frequent words are short.
 */
export function wordOf(language: number, rank: number): string {
  const [consonants, vowels] = (languages[language] as (typeof languages)[number]).map((each) =>
    each.split(' '),
  ) as [string[], string[]];
  let word = '';
  for (let left = rank + 1; left > 0; left = Math.floor(left / 112)) {
    const at = left % 112;
    word += `${consonants[at % 16]}${vowels[Math.floor(at / 16)]}`;
  }
  return word;
}

/** Generates sentences. As in natural texts, a word's frequency is inversely proportional to its rank. */
function* batchesOfSentences(size: number) {
  const random = numbers();
  for (let from = 0; from < sentences; from += size)
    yield Array.from({ length: size }, (_, i) => {
      const language = (from + i) % languages.length;
      const words = Array.from({ length: 6 + Math.floor(random() * 18) }, () =>
        wordOf(language, Math.floor(words_per_language ** random()) - 1),
      );
      const [first = '', ...others] = words;
      return `${first[0]?.toUpperCase()}${first.slice(1)} ${others.join(' ')}.`;
    });
}

function sizesOf(messages: number, chats: number): number[] {
  const weights = Array.from({ length: chats - large_chats }, (_, i) => (i + 20) ** -0.9);
  const all = weights.reduce((a, b) => a + b, 0);
  const rest = messages * (1 - large_chats / 10);
  return [
    ...Array<number>(large_chats).fill(messages / 10),
    ...weights.map((weight) => Math.max(1, Math.round((rest * weight) / all))),
  ];
}

/**
 * An SQL expression for a text message of a group, in the format of `packMessage`. SQL builds the records faster than a
 * program could.
 */
const record = `
  '\\x9901ce00000001ce'::bytea || int4send(date) || '\\x00ce'::bytea || int4send(sender::int) || '\\x0100cd'::bytea
  || int2send((9 + octet_length(words))::int2) || '\\x0081a474657874da'::bytea
  || int2send(octet_length(words)::int2) || words || '\\x81a466726f6d82a26964ce'::bytea || int4send(sender::int)
  || '\\xa16ea5416c696365'::bytea`;

/**
 * Inserts the rows of one partition in the order of their dates. The rows of a chat are thus spread over the table.
 * Each text ends with the number of the message, which is unique in its chat.
 */
const fillPartition = `
  insert into messages (chat_id, user_id, message_id, version, day, record)
  select chat_id, 0, message_id, 1, date '1970-01-01' + date / ${day_s}, ${record}
  from (
    select p.chat_id, p.message_id, p.date, p.sender,
      convert_to(a.text || ' ' || b.text || ' #' || p.message_id, 'UTF8') as words
    from (
      select c.id as chat_id, m as message_id, 5000000 + abs(c.n + m) % 5000 as sender,
        ($1::bigint + floor($2::float8 * (m - 1 - c.size * $3::bigint / ${partitions} + c.phase)
          / greatest(1, c.size * ($3::bigint + 1) / ${partitions} - c.size * $3::bigint / ${partitions})))::int as date,
        c.n % 4 + 4 * (abs(hashint8(m * 7919 + c.n)::bigint) % ${sentences / 4}) as first,
        c.n % 4 + 4 * (abs(hashint8(m * 104729 + c.n)::bigint) % ${sentences / 4}) as second
      from search_chats c, generate_series(
        c.size * $3::bigint / ${partitions} + 1, c.size * ($3::bigint + 1) / ${partitions}) m
      order by date, c.n) p
    join search_sentences a on a.id = p.first
    join search_sentences b on b.id = p.second) t`;

/** Replaces the empty partition for past days with partitions of 30 days, as MESSAGE_DAYS=300 would. */
async function dividePast(session: pg.Client): Promise<number> {
  const { rows } = await session.query(
    `select relname as name from pg_class where relname like 'messages\\_until\\_%' and relkind = 'r'`,
  );
  const { name } = rows[0] as { readonly name: string };
  const text = name.slice(-8);
  const end = Date.UTC(Number(text.slice(0, 4)), Number(text.slice(4, 6)) - 1, Number(text.slice(6))) / 1_000;
  const dateOf = (second: number) => new Date(second * 1_000).toISOString().slice(0, 10);
  await session.query(`drop table ${name}`);
  for (let i = 0; i < partitions; i++) {
    const from = dateOf(end - (partitions - i) * partition_days * day_s);
    const to = dateOf(end - (partitions - i - 1) * partition_days * day_s);
    await session.query(
      `create table messages_${from.replaceAll('-', '')}_${to.replaceAll('-', '')} partition of messages
       for values from ('${from}') to ('${to}') with (fillfactor = 90)`,
    );
  }
  return end - partitions * partition_days * day_s;
}

async function makeChats(session: pg.Client, owner: Person, sizes: readonly number[]): Promise<number[]> {
  await session.query(
    `create unlogged table search_chats (n bigint, id bigint, size bigint, phase float8);
     create unlogged table search_sentences (id bigint primary key, text text)`,
  );
  await session.query(
    `with rows as (select n - 1 as n, -nextval('ids') as id, size from unnest($2::bigint[]) with ordinality as s (size, n)),
       made as (insert into chats (id, type, title, creator_id)
         select id, 'group', 'Search ' || n, $1::bigint from rows),
       sequences as (insert into chat_sequences (chat_id, user_id, last_message_id, version)
         select id, 0, size, 1 from rows)
     insert into search_chats select n, id, size, abs(hashint8(n)::bigint) % 1000 / 1000.0 from rows`,
    [owner.id, sizes],
  );
  const { rows } = await session.query('select id::float8 from search_chats order by n');
  return rows.map(({ id }) => id);
}

export interface SearchedChats {
  /** The chat ids, ordered by the size of the chat. */
  readonly ids: readonly number[];
  readonly sizes: readonly number[];
}

/** Inserts the messages. A million messages take about a minute. */
export async function fillSearch(
  databaseUrl: string,
  owner: Person,
  messages: number,
  chats: number,
  progress: (line: string) => void,
): Promise<SearchedChats> {
  const session = await openSession(databaseUrl, 'bench', 10_000);
  try {
    await session.query(`set work_mem = '256MB'`);
    const sizes = sizesOf(messages, chats);
    const ids = await makeChats(session, owner, sizes);
    let id = 0;
    for (const batch of batchesOfSentences(20_000)) {
      await session.query(
        'insert into search_sentences select $1::bigint + n - 1, text from unnest($2::text[]) with ordinality as s (text, n)',
        [id, batch],
      );
      id += batch.length;
    }
    await session.query('analyze search_sentences; analyze search_chats');
    const from = await dividePast(session);
    for (let i = 0; i < partitions; i++) {
      progress(`search: writing part ${i + 1} of ${partitions}`);
      await session.query(fillPartition, [from + i * partition_days * day_s, partition_days * day_s - 1, i]);
    }
    await session.query('vacuum (analyze) messages');
    await session.query('analyze chat_sequences');
    return { ids, sizes };
  } finally {
    await session.end();
  }
}

/** Makes each of the given people a member of each of the given chats. */
export async function joinSearched(
  databaseUrl: string,
  people: readonly Person[],
  chats: readonly number[],
): Promise<void> {
  const session = await openSession(databaseUrl, 'bench', 10_000);
  try {
    await session.query(
      `insert into chat_members (chat_id, member_id, is_bot, status)
       select chat, person, false, 'member' from unnest($1::bigint[]) as c (chat), unnest($2::bigint[]) as p (person)
       on conflict do nothing`,
      [chats, people.map((person) => person.id)],
    );
    await session.query(
      `update users set chats_version = nextval('control_versions') where id = any($1::bigint[])`,
      [people.map((person) => person.id)],
    );
  } finally {
    await session.end();
  }
}

/**
 * Does the minimum work for one call in a comparison server (a floor): parses the JSON, packs the records, calls the
 * script by its hash through the service's Redis client, and writes the JSON answer. A comparison server checks
 * nothing. It knows only the bot or the people for which it was started.
 */
import { Packr } from 'msgpackr';
import { limits } from '../../src/limits.js';
import type { RedisConnection } from '../../src/redis/connection.js';
import { ScriptCommand } from '../../src/redis/scripts/script_command.js';
import { messageKinds, type Profile, pack } from '../../src/store/core/codec.js';
import {
  type ChatRef,
  chatText,
  directChat,
  type Keys,
  partitionOfPost,
  postNumber,
} from '../../src/store/core/keys.js';
import { directKeys, toUserKeys, withMessage } from '../../src/store/core/script_keys.js';
import { loadBare } from './bare_script.js';

export interface FloorRequest {
  readonly verb: string;
  readonly path: string;
  readonly query: string;
  readonly authorization: string;
  readonly body: Buffer;
}

export type FloorCall = (request: FloorRequest) => Promise<string>;

export interface FloorChat {
  readonly bot: number;
  readonly user: number;
  readonly from: unknown;
  readonly chat: unknown;
}

export interface FloorPosts {
  /** The internal id of each post, keyed by the external id, which is part of the URL path. */
  readonly posts: Readonly<Record<string, number>>;
  readonly people: Readonly<Record<string, { readonly id: number; readonly externalId: string }>>;
}

export type CallSetup =
  | ({ readonly kind: 'send' } & FloorChat)
  | ({ readonly kind: 'thin_send' } & FloorChat)
  | ({ readonly kind: 'edit' } & FloorChat)
  | { readonly kind: 'pin'; readonly profile: Profile }
  | ({ readonly kind: 'react' } & FloorPosts);

export interface Parts {
  readonly connection: RedisConnection;
  readonly keys: Keys;
}

const prefix = `floor${process.pid}.${Date.now()}.`;
let count = 0;
const nextRequest = () => `${prefix}${count++}`;
const parse = <T>(body: Buffer) => JSON.parse(body.toString()) as T;
const noOrigin = pack({});
const zero = pack(0);

async function serveSend({ connection, keys }: Parts, setup: FloorChat): Promise<FloorCall> {
  const { bot, user, from, chat } = setup;
  const script = await loadBare(connection, 'messages/send_to_user', { keys: ['request'], args: ['tails'] });
  const ref = directChat(bot, user);
  const fixed = { chat: chatText(ref), reply_to: '', keep: '', token: '' };
  const row = script.row({ ...toUserKeys(keys, ref, '') }, fixed);
  const partition = keys.partitions.of(bot);
  // The message header ends with edit time 0, the sender, the kind and no flags. After the header come the lengths, the
  // content (without a keyboard) and the origin.
  const header = Buffer.concat([zero, pack(bot), pack(messageKinds.text), zero]);
  const [id, date] = [script.place('first'), script.place('date')];
  return async ({ body }) => {
    const { text } = parse<{ text: string }>(body);
    const content = pack({ text });
    const tail = Buffer.concat([header, pack(content.length), zero, content, noOrigin]);
    const reply = await script.run(row, [keys.request(partition, nextRequest()), tail]);
    const result = { message_id: Number(reply[id]), from, chat, date: Number(reply[date]), text };
    return JSON.stringify({ ok: true, result });
  };
}

/**
 * Assigns an id, stores the message and appends it to a stream. Nothing reads the message or the stream, so the message
 * expires and the stream is trimmed.
 */
const thinScript = `#!lua
local id = redis.call('HINCRBY', KEYS[1], 'ver', '1')
redis.call('SET', KEYS[2] .. id, ARGV[1], 'PX', '60000')
redis.call('XADD', KEYS[3], 'MAXLEN', '~', '100000', '*', 'i', ARGV[1])
return id`;

/**
 * Serves calls that send a message. Uses `thinScript`, which checks nothing and does not recognise repeated requests.
 */
async function serveThinSend(
  { connection, keys }: Parts,
  { bot, from, chat }: FloorChat,
): Promise<FloorCall> {
  const meta = keys.meta(keys.partitions.of(bot));
  const own = meta.replace(/meta$/, 'floor');
  const sha = (await connection.client.script('LOAD', thinScript)) as string;
  return async ({ body }) => {
    const { text } = parse<{ text: string }>(body);
    const id = await connection.send(
      new ScriptCommand('evalsha', [sha, 3, meta, `${own}:`, `${own}_log`, pack({ text })]),
    );
    const result = { message_id: Number(id), from, chat, date: Math.floor(Date.now() / 1000), text };
    return JSON.stringify({ ok: true, result });
  };
}

const changedMessage = ['request', 'message', 'message_ticket'];

const messageKeys = (keys: Keys, ref: ChatRef) => ({
  ...withMessage(keys, directKeys(keys, ref, ''), ref, 0),
  pending: keys.pendingEdits(keys.partitions.of(ref.id)),
  edits_due: keys.editsDue(keys.partitions.of(ref.id)),
});

async function serveEdit({ connection, keys }: Parts, setup: FloorChat): Promise<FloorCall> {
  const { bot, user, from, chat } = setup;
  const script = await loadBare(connection, 'messages/edit_direct', {
    keys: changedMessage,
    args: ['edit', 'content'],
  });
  const ref = directChat(bot, user);
  const row = script.row(messageKeys(keys, ref), { markup: '', from: '', token: '' });
  const partition = keys.partitions.of(bot);
  const record = script.place('record');
  const [name, editor] = [chatText(ref), String(bot)];
  const packr = new Packr({ useRecords: false, int64AsType: 'number' });
  return async ({ body }) => {
    const { message_id, text } = parse<{ message_id: number; text: string }>(body);
    const message = keys.message(ref, message_id);
    const reply = await script.run(row, [
      keys.request(partition, nextRequest()),
      message,
      keys.ticket(message),
      pack([name, String(message_id), editor, 'text']),
      pack({ text }),
    ]);
    // Reads only the header of the message: format, version, date, edit time.
    let header: number[] = [];
    packr.unpackMultiple(reply[record] as Buffer, (first: number[]) => {
      header = first;
      return false;
    });
    const [, , date = 0, edited = 0] = header;
    const result = { message_id, from, chat, date, edit_date: Math.floor(edited / 1000), text };
    return JSON.stringify({ ok: true, result });
  };
}

async function servePin({ connection, keys }: Parts, profile: Profile): Promise<FloorCall> {
  const bot = profile.id;
  const script = await loadBare(connection, 'messages/pin_direct', {
    keys: changedMessage,
    args: ['pin', 'tail'],
  });
  const partition = keys.partitions.of(bot);
  const header = Buffer.concat([zero, pack(bot), pack(messageKinds.service), zero]);
  const content = pack({});
  const segments = Buffer.concat([pack(content.length), zero, content]);
  const fixed = { from: pack(profile), notify: '1', token: '' };
  const rows = new Map<number, ReturnType<typeof script.row>>();
  const who = String(bot);
  const answer = JSON.stringify({ ok: true, result: true });
  return async ({ body }) => {
    const { chat_id, message_id } = parse<{ chat_id: number; message_id: number }>(body);
    const ref = directChat(bot, chat_id);
    let row = rows.get(chat_id);
    if (!row) {
      row = script.row(messageKeys(keys, ref), fixed);
      rows.set(chat_id, row);
    }
    const message = keys.message(ref, message_id);
    await script.run(row, [
      keys.request(partition, nextRequest()),
      message,
      keys.ticket(message),
      pack([chatText(ref), String(message_id), who]),
      Buffer.concat([header, segments, pack({ service: { pinned: message_id } })]),
    ]);
    return answer;
  };
}

const listedMax = limits.reactors_listed_max;
const uuidBytes = 16;
const nobody = Buffer.alloc(0);

function uuid(list: Buffer, at: number): string {
  const hex = list.toString('hex', at, at + uuidBytes);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Builds the list of a post's reactions from the post's record in Redis, which is a list of names and values. */
function shownReactions(record: readonly Buffer[], own: readonly string[], self: string): object[] {
  const counts = new Map<string, { count: number; first: number; latest: Buffer; older: Buffer }>();
  const of = (emoji: string) => {
    const known = counts.get(emoji);
    if (known) return known;
    const made = { count: 0, first: 0, latest: nobody, older: nobody };
    counts.set(emoji, made);
    return made;
  };
  for (let i = 0; i < record.length; i += 2) {
    const name = String(record[i]);
    const value = record[i + 1] as Buffer;
    if (name.startsWith('n:')) of(name.slice(2)).count = Number(value);
    else if (name.startsWith('f:')) of(name.slice(2)).first = Number(value);
    else if (name.startsWith('l:')) of(name.slice(2)).latest = value;
    else if (name.startsWith('o:')) of(name.slice(2)).older = value;
  }
  return [...counts]
    .sort(([, a], [, b]) => b.count - a.count || a.first - b.first)
    .map(([emoji, { count, latest, older }]) => {
      const users = own.includes(emoji) ? [self] : [];
      for (const list of [latest, older]) {
        for (let at = 0; at < list.length && users.length < listedMax; at += uuidBytes) {
          const user = uuid(list, at);
          if (user !== users[0]) users.push(user);
        }
      }
      const more = count > listedMax ? { user_ids_truncated: true } : {};
      return { emoji, count, user_ids: users, ...more };
    });
}

async function serveReact({ connection, keys }: Parts, setup: FloorPosts): Promise<FloorCall> {
  const script = await loadBare(connection, 'posts/react', {
    keys: ['user_ticket', 'request'],
    args: ['reaction', 'external'],
  });
  const bytes = (id: string) => Buffer.from(id.replaceAll('-', ''), 'hex');
  const people = new Map(
    Object.entries(setup.people).map(([token, { id, externalId }]) => [
      `Bearer ${token}`,
      { id: String(id), externalId, external: bytes(externalId) },
    ]),
  );
  const posts = new Map(
    Object.entries(setup.posts).map(([name, id]) => {
      const partition = partitionOfPost(id);
      const key = keys.post(id);
      const at = {
        meta: keys.meta(partition),
        journal: keys.journal(partition),
        post: key,
        post_ticket: keys.ticket(key),
        acted: keys.acted(id),
        chat: keys.chatRoot(partition),
        member: keys.memberRoot(partition),
        channel: keys.postChannel(id),
        due: keys.countsDue(partition),
      };
      const args = { token: '', known: '-' };
      const named = [String(id), String(partition), String(postNumber(id))];
      return [name, { row: script.row(at, args), acted: keys.acted(id), partition, named }];
    }),
  );
  const [own, fields] = [script.place('own'), script.place('fields')];
  return async ({ verb, path, query, authorization, body }) => {
    const person = people.get(authorization);
    const post = posts.get(path.split('/')[3] ?? '');
    if (!person || !post) throw new Error('the floor does not know this person or post');
    const removes = verb === 'delete';
    const emoji = removes
      ? decodeURIComponent(query.slice('emoji='.length))
      : parse<{ emoji: string }>(body).emoji;
    const reply = await script.run(post.row, [
      keys.ticket(`${post.acted}${person.id}`),
      keys.request(post.partition, nextRequest()),
      pack([...post.named, removes ? 'remove' : 'set', emoji, person.id]),
      person.external,
    ]);
    const text = String(reply[own]);
    const mine = text === '' ? [] : text.split(' ');
    const reactions = shownReactions(reply[fields] as unknown as Buffer[], mine, person.externalId);
    return JSON.stringify({ ok: true, reactions, my_reactions: mine });
  };
}

export function serveCalls(parts: Parts, setup: CallSetup): Promise<FloorCall> {
  switch (setup.kind) {
    case 'send':
      return serveSend(parts, setup);
    case 'thin_send':
      return serveThinSend(parts, setup);
    case 'edit':
      return serveEdit(parts, setup);
    case 'pin':
      return servePin(parts, setup.profile);
    case 'react':
      return serveReact(parts, setup);
  }
}

/**
 * Provides a Redis in cluster mode for tests of single scripts. A test seeds data, makes one call, and compares the
 * whole state before and after.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type ChainableCommander, Redis } from 'ioredis';
import { freePort } from '../../src/dev/processes.js';
import { limits } from '../../src/limits.js';
import { type CombinedForm, readScripts, type Script } from '../../src/redis/scripts/contract.js';
import { type CallValues, combinedArgs, shapeOf } from '../../src/redis/scripts/script_args.js';
import {
  type Content,
  type InlineKeyboard,
  messageKinds,
  type Origin,
  pack,
  packMessage,
} from '../../src/store/core/codec.js';
import { type ChatRef, chatText, directChat, makeKeys, sharedChat } from '../../src/store/core/keys.js';

export const scripts = readScripts(fileURLToPath(new URL('../../lua', import.meta.url)));
export const keys = makeKeys(8);

/**
 * Starts one node with all slots. The node refuses a script that accesses another slot, like a cluster of several
 * nodes.
 */
export async function startClusterNode() {
  const dir = mkdtempSync(join(tmpdir(), 'petrel-lua-'));
  const port = await freePort();
  const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', ''];
  const child = spawn(
    'redis-server',
    [...settings, '--cluster-enabled', 'yes', '--cluster-port', `${await freePort()}`],
    {
      stdio: 'ignore',
    },
  );
  const client = new Redis({ port, host: '127.0.0.1', protocol: 2, disableClientInfo: true });
  client.on('error', () => undefined);
  await new Promise<void>((ready) => client.once('ready', () => ready()));
  await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  while (!String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) await sleep(20);
  return {
    client,
    async stop() {
      client.disconnect();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** This incarnation is so high that versions exceed 10^14. Lua’s `..` rounds such numbers. */
export const incarnation = 95;
export const base = incarnation * limits.versions_per_incarnation;
/** Returns the ticket that a script issues for `token`: the incarnation and the token, separated by a space. */
export const issued = (token: string, under = incarnation): string => `${under} ${token}`;
export const run = 'run-of-this-redis';

export const bot = 100_001;
export const user = 5_000_000_007;
export const direct = directChat(bot, user);
export const group = sharedChat(-100_777);
export const partitionOf = (chat: ChatRef): number => keys.partitions.of(chat.id);
export const versionIn = (id: string | Buffer): number => Number(String(id).split('-')[0]);
export const seconds = (): number => Math.floor(Date.now() / 1000);

export type Seed = (client: Redis) => Promise<unknown>;

export const seeds = {
  open:
    (partition: number, fields: Record<string, string | number> = {}): Seed =>
    (client) =>
      client.hset(keys.meta(partition), { run, ver: base, hw: 100, hwb: 5_000, ...fields }),
  hash:
    (key: string, fields: Record<string, string | number | Buffer>): Seed =>
    (client) =>
      client.hset(key, fields),
  text:
    (key: string, value: string | Buffer, ttlMs?: number): Seed =>
    (client) =>
      ttlMs === undefined ? client.set(key, value) : client.set(key, value, 'PX', ttlMs),
  chat:
    (chat: ChatRef, fields: Record<string, string | number> = {}): Seed =>
    async (client) => {
      await seeds.unseen(chat, fields)(client);
      await seeds.log(chat)(client);
    },
  log:
    (chat: ChatRef): Seed =>
    async (client) => {
      await client.xgroup('CREATE', keys.changes(chat), 'g', '0', 'MKSTREAM');
      await client.xgroup('DESTROY', keys.changes(chat), 'g');
    },
  unseen: (chat: ChatRef, fields: Record<string, string | number> = {}): Seed =>
    seeds.hash(keys.chat(chat), {
      ...{
        s: 7,
        i: incarnation,
        v: base,
        c: base,
        p: pack({ id: 1, n: 'P' }),
        pv: 3,
        t: chat.user === 0 ? 'group' : 'direct',
        b: '',
        pi: incarnation,
      },
      ...fields,
    }),
  message: (chat: ChatRef, id: number, given: MessageSeed = {}): Seed =>
    seeds.text(keys.message(chat, id), record(given)),
  queue: (fields: Record<string, string | number> = {}): Seed =>
    seeds.hash(keys.queueState(bot), {
      ...{ seq: 41, inc: incarnation, bytes: 0, mask: 63, wi: incarnation, wv: 5, wp: 'all', ...fields },
    }),
  entry: (id: number, fields: Record<string, string | Buffer> = {}): Seed => {
    const entry = {
      k: 'message',
      t: `${Date.now()}`,
      c: chatText(direct),
      m: '1',
      r: 'r',
      f: 'f',
      p: '',
      y: '',
      x: '',
      ...fields,
    };
    return (client) => client.xadd(keys.queue(bot), `${id}-0`, ...Object.entries(entry).flat());
  },
  member: (who: number, status: string, rights = {}, inc = incarnation): Seed =>
    seeds.text(keys.member(group.id, who), pack([9, inc, status, rights, false])),
  stream:
    (key: string, entries: number): Seed =>
    (client) =>
      client.eval(
        "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], i .. '-0', 'k', 'x') end",
        1,
        key,
        entries,
      ),
};

export interface MessageSeed {
  readonly version?: number;
  readonly date?: number;
  readonly editedAt?: number;
  readonly sender?: number;
  readonly kind?: (typeof messageKinds)[keyof typeof messageKinds];
  readonly flags?: number;
  readonly markup?: InlineKeyboard | null;
  readonly origin?: Origin;
  readonly content?: Content;
  readonly post?: number;
}

export const keyboard = (data: string): InlineKeyboard => ({
  inline_keyboard: [[{ text: 't', callback_data: data }]],
});

export const record = (given: MessageSeed = {}): Buffer =>
  packMessage({
    ...{ version: base, date: seconds(), editedAt: 0, sender: bot, kind: messageKinds.text, flags: 0 },
    ...{ content: { text: 'old' }, markup: null, origin: {}, post: 0, ...given },
  });

/** Sends the commands in one pipeline. */
async function answersOf(commands: ChainableCommander): Promise<unknown[]> {
  const answers = (await commands.exec()) ?? [];
  return answers.map(([error, value]) => {
    if (error) throw error;
    return value;
  });
}

/**
 * The number of entries of a stream that a dump contains. For a longer stream, a dump also contains the length and the
 * last entry. This is enough, because an entry never changes. Any change of the stream changes its length or adds an
 * entry at the end.
 */
const dumped_entries_max = 1_000;

/** Adds the commands that read a key, and returns their number. */
function readKey(commands: ChainableCommander, key: string, type: unknown): number {
  if (type === 'string') commands.getBuffer(key);
  else if (type === 'hash') commands.hgetall(key);
  else if (type === 'zset') commands.zrange(key, '0', '-1', 'WITHSCORES');
  else if (type === 'list') commands.lrange(key, 0, -1);
  else {
    commands.xrange(key, '-', '+', 'COUNT', dumped_entries_max);
    commands.xrevrange(key, '+', '-', 'COUNT', 1);
    commands.xlen(key);
    return 3;
  }
  return 1;
}

export interface Dumped {
  readonly type: unknown;
  readonly expires: boolean;
  readonly values: readonly unknown[];
}

export async function dump(client: Redis): Promise<Map<string, Dumped>> {
  const names = (await client.keys('*')).sort();
  const kinds = client.pipeline();
  for (const key of names) kinds.type(key).pttl(key);
  const found = await answersOf(kinds);
  const reads = client.pipeline();
  const counts = names.map((key, i) => readKey(reads, key, found[2 * i]));
  const values = await answersOf(reads);
  return new Map(
    names.map((key, i) => [
      key,
      {
        type: found[2 * i],
        expires: Number(found[2 * i + 1]) > 0,
        values: values.splice(0, counts[i]),
      },
    ]),
  );
}

/** Returns a text for the contents of a key. Equal contents have equal texts. */
const textOf = (dumped: Dumped | undefined): string | undefined =>
  dumped &&
  `${dumped.type} ${dumped.expires} ${JSON.stringify(dumped.values, (_, value) =>
    value?.constructor === Object ? Object.entries(value).sort() : value,
  )}`;

/** Returns the keys whose contents have changed, without the partition tag of each key. */
export function changed(before: Map<string, Dumped>, after: Map<string, Dumped>): string[] {
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names
    .filter((key) => textOf(before.get(key)) !== textOf(after.get(key)))
    .map((key) => key.replace(/^\{[^}]*\}:/, ''))
    .sort();
}

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/**
 * Returns whether a key matches a pattern in the header of a script. If `prefix` is true, `key` must match only the
 * part of the pattern before one of its placeholders.
 */
export function fits(pattern: string, key: string, prefix: boolean): boolean {
  const source = (text: string) =>
    `^${escaped(text).replace('\\{NN\\}', '\\{[^{}]+\\}').replaceAll(/<\w+>/g, '[^{}]+?')}$`;
  if (pattern.endsWith('…')) return key.startsWith('{');
  if (!prefix) return new RegExp(source(pattern)).test(key);
  const cuts = [...pattern.matchAll(/</g)].map((match) => pattern.slice(0, match.index));
  return cuts.some((cut) => new RegExp(source(cut)).test(key));
}

export async function callScript(
  client: Redis,
  script: Script,
  given: Record<string, string | readonly string[]>,
  args: Record<string, unknown>,
): Promise<unknown[]> {
  const flatKeys = script.keys.flatMap((spec) => {
    const value = given[spec.name];
    if (value === undefined) throw new Error(`${script.name}: no key ${spec.name}`);
    for (const key of [value].flat()) {
      if (!fits(spec.pattern, key, spec.form === 'derived')) {
        throw new Error(`${script.name}: ${key} is not spelled ${spec.pattern}`);
      }
    }
    return value;
  });
  if (new Set(flatKeys.map((key) => /^\{[^}]+\}/.exec(key)?.[0])).size !== 1) {
    throw new Error(`${script.name}: keys of several partitions: ${flatKeys.join(' ')}`);
  }
  const flatArgs = script.args.flatMap((spec) => {
    const value = spec.name === 'run' ? (args.run ?? run) : args[spec.name];
    if (value === undefined) throw new Error(`${script.name}: no argument ${spec.name}`);
    if (spec.form === 'list') return value as string[];
    return [typeof value === 'boolean' ? (value ? '1' : '0') : (value as string | Buffer)];
  });
  const reply = await client.callBuffer('EVAL', script.source, flatKeys.length, ...flatKeys, ...flatArgs);
  return (reply as unknown[]).map((part) => (Buffer.isBuffer(part) ? part.toString('latin1') : part));
}

/**
 * Calls the combined form of a script, which handles several calls in one run. Returns the raw status and values of
 * each call.
 */
export async function callCombined(
  client: Redis,
  script: Script & { combined: CombinedForm },
  calls: readonly [CallValues, ...CallValues[]],
): Promise<unknown[][]> {
  const { combined } = script;
  const [, count, ...rest] = combinedArgs(shapeOf(script), combined, String(calls[0].args.run ?? run), calls);
  const answers = await client.callBuffer('EVAL', combined.source, count as number, ...rest);
  return (answers as unknown[][]).map((answer) =>
    answer.map((part) => (Buffer.isBuffer(part) ? part.toString('latin1') : part)),
  );
}

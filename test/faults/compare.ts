import type { Redis } from 'ioredis';
import pg from 'pg';
import { messageKinds, messageVersion, unpackMessage } from '../../src/store/core/codec.js';
import { openMasters } from '../support/cluster.js';
import type { Seen } from '../support/ledger.js';
import type { Service } from '../support/service.js';
import { eventually } from './world.js';

export interface Comparison {
  readonly messages: number;
  readonly tombstones: number;
  readonly chats: number;
  readonly quarantined: number;
  /** Descriptions of the differences, at most 20. */
  readonly differences: readonly string[];
}

type Stores = Pick<Service, 'redis' | 'databaseUrl'>;

interface MessageRow {
  readonly chat_id: string;
  readonly user_id: string;
  readonly message_id: string;
  readonly version: string;
  readonly record: Buffer | null;
  readonly deleted_at: Date | null;
}

const chatName = (row: { readonly chat_id: string; readonly user_id: string }) =>
  row.user_id === '0' ? row.chat_id : `${row.chat_id}.${row.user_id}`;

async function withMasters<T>(
  { redis }: Pick<Stores, 'redis'>,
  work: (masters: readonly Redis[]) => Promise<T>,
): Promise<T> {
  const masters = openMasters(redis);
  for (const master of masters) master.on('error', () => undefined);
  try {
    return await work(masters);
  } finally {
    for (const master of masters) master.disconnect();
  }
}

async function withPostgres<T>(
  { databaseUrl }: Pick<Stores, 'databaseUrl'>,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function keysOf(masters: readonly Redis[], match: string): Promise<Map<string, Redis>> {
  const found = new Map<string, Redis>();
  for (const master of masters)
    for await (const batch of master.scanStream({ match, count: 1_000 }))
      for (const key of batch as string[]) found.set(key, master);
  return found;
}

async function sumOf(masters: readonly Redis[], kind: 'journal' | 'outbox'): Promise<number> {
  const keys = await keysOf(masters, `*:${kind}`);
  const lengths = await Promise.all([...keys].map(([key, master]) => master.xlen(key)));
  return lengths.reduce((a, b) => a + b, 0);
}

export function drained(service: Stores, msMax = 30_000): Promise<void> {
  return withMasters(service, (masters) =>
    eventually('the journals are empty', async () => (await sumOf(masters, 'journal')) === 0, msMax),
  );
}

export const waitingIn = (service: Stores, kind: 'journal' | 'outbox'): Promise<number> =>
  withMasters(service, (masters) => sumOf(masters, kind));

function differenceOf(row: MessageRow, record: Buffer | null): string | null {
  if (record === null) return 'is in Postgres alone';
  if (messageVersion(record) !== Number(row.version))
    return `has version ${messageVersion(record)}, in Postgres ${row.version}`;
  const deleted = unpackMessage(record).kind === messageKinds.deleted;
  if (deleted !== (row.record === null) || deleted !== (row.deleted_at !== null))
    return deleted ? 'is deleted in Redis alone' : 'is deleted in Postgres alone';
  return deleted || record.equals(row.record as Buffer) ? null : 'has other bytes';
}

/** Compares both stores without changing them. The service must be idle, and all its entities must be in Redis. */
export const compareStores = (service: Stores): Promise<Comparison> =>
  withMasters(service, (masters) => withPostgres(service, (client) => compare(masters, client)));

async function compare(masters: readonly Redis[], client: pg.Client): Promise<Comparison> {
  const differences: string[] = [];
  const differ = (text: string) => differences.length < 20 && differences.push(text);
  const keys = [...(await keysOf(masters, '*:msg:*'))].filter(([key]) => !key.endsWith(':ticket'));
  const nameOf = (key: string) => key.slice(key.indexOf(':msg:') + 5);
  const records = new Map<string, Buffer | null>();
  for (let i = 0; i < keys.length; i += 500) {
    const part = keys.slice(i, i + 500);
    const values = await Promise.all(part.map(([key, master]) => master.getBuffer(key)));
    for (const [j, [key]] of part.entries()) records.set(nameOf(key), values[j] as Buffer | null);
  }
  const { rows } = await client.query<MessageRow>('select * from messages');
  for (const row of rows) {
    const name = `${chatName(row)}:${row.message_id}`;
    const difference = differenceOf(row, records.get(name) ?? null);
    if (difference) differ(`message ${name} ${difference}`);
    records.delete(name);
  }
  for (const name of records.keys()) differ(`message ${name} is in Redis alone`);

  const sequences = await client.query<{ chat_id: string; user_id: string; last_message_id: string }>(
    'select chat_id, user_id, last_message_id from chat_sequences',
  );
  const lastOf = new Map(sequences.rows.map((row) => [chatName(row), row.last_message_id]));
  const chats = [...(await keysOf(masters, '*:chat:*'))].filter(([key]) => !key.endsWith(':ticket'));
  for (const [key, master] of chats) {
    const name = key.slice(key.indexOf(':chat:') + 6);
    const last = await master.hget(key, 's');
    if (last !== (lastOf.get(name) ?? '0'))
      differ(`chat ${name} has come to ${last}, in Postgres to ${lastOf.get(name)}`);
  }
  const quarantine = await client.query<{ count: string }>('select count(*) as count from quarantine');
  return {
    messages: rows.length,
    tombstones: rows.filter((row) => row.record === null).length,
    chats: chats.length,
    quarantined: Number(quarantine.rows[0]?.count),
    differences,
  };
}

export function postgresHistory(service: Stores): Promise<Map<string, Seen[]>> {
  return withPostgres(service, async (client) => {
    const { rows } = await client.query<MessageRow>('select * from messages where record is not null');
    const found = new Map<string, Seen[]>();
    for (const row of rows) {
      const { content, kind } = unpackMessage(row.record as Buffer);
      const text = content.text ?? '';
      if (text === '/start' || kind === messageKinds.service) continue;
      const list = found.get(chatName(row)) ?? [];
      found.set(chatName(row), list);
      list.push({ messageId: Number(row.message_id), text });
    }
    return found;
  });
}

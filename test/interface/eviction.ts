/** Evicts entities from Redis as if their time to live had ended. Also changes the dates of messages. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { type ChatRef, makeKeys } from '../../src/store/core/keys.js';
import { openAnywhere, openMasters } from '../support/cluster.js';
import type { Service } from '../support/service.js';

/** The keys that Redis may evict, because their data are in Postgres. */
const evictable =
  /^\{[^}]+\}:(bot|webhook|user|memberships|commands|descriptions|member|administrators|name|post|acted|poll|voted|chat|msg):([^:.]+)/;
const wait_ms_max = 15_000;
const keys = makeKeys(64);

export interface Eviction {
  /**
   * Evicts all keys that belong to these ids and usernames and that have a time to live. Returns the number of evicted
   * keys. Waits for the flusher, which sets the time to live of a key when the last version is in Postgres. Fails after
   * 15 s.
   */
  evict(names: ReadonlySet<string>): Promise<number>;
  /** Waits until a message was flushed. Then sets its date to `date` (Unix seconds) in Redis and in Postgres. */
  backdate(chat: ChatRef, messageId: number, date: number): Promise<void>;
  close(): Promise<void>;
}

const belongs = (key: string, names: ReadonlySet<string>): boolean =>
  evictable
    .exec(key)?.[2]
    ?.split(/[:.]/)
    .some((part) => names.has(part)) ?? false;

/**
 * Returns a copy of a record with another date. In a record, the date is the 32-bit number after the format and the
 * version.
 */
function redated(record: Buffer, date: number): Buffer {
  const at = record.indexOf(0xce, 2);
  const age_s = Math.floor(Date.now() / 1000) - record.readUInt32BE(at + 1);
  if (at < 0 || at > 12 || age_s < 0 || age_s > 3_600) throw new Error('the date is not where it was');
  const copy = Buffer.from(record);
  copy.writeUInt32BE(date, at + 1);
  return copy;
}

export async function openEviction(service: Service): Promise<Eviction> {
  const masters = openMasters(service.redis);
  const redis: Redis = openAnywhere(service.redis);
  const postgres = new pg.Pool({ connectionString: service.databaseUrl, max: 2 });

  /** Concurrent calls share one list of all keys. A call that comes while a list is being read gets the next list. */
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<string[]> | null = null;
  const allKeys = (): Promise<string[]> => {
    next ??= running.then(() => {
      next = null;
      const look = Promise.all(masters.map((master) => master.keys('*'))).then((all) => all.flat());
      running = look.catch(() => undefined);
      return look;
    });
    return next;
  };

  /** Waits until `left` returns no keys. After 15 s, fails and names the remaining keys. */
  async function until(what: string, left: () => Promise<readonly string[]>): Promise<void> {
    const end = performance.now() + wait_ms_max;
    for (;;) {
      const keys = await left();
      if (keys.length === 0) return;
      if (performance.now() > end) throw new Error(`${what}, not in time: ${keys}`);
      await sleep(10);
    }
  }

  return {
    async evict(names) {
      const own = (await allKeys()).filter((key) => belongs(key, names));
      let left = own;
      await until('eviction', async () => {
        // Expires only keys that have a time to live. A key without a time to live stays, because its data is not in
        // Postgres yet.
        const gone = await Promise.all(left.map((key) => redis.pexpire(key, 0, 'XX')));
        const kept = left.filter((_, i) => gone[i] !== 1);
        const there = await Promise.all(kept.map((key) => redis.exists(key)));
        left = kept.filter((_, i) => there[i] === 1);
        return left;
      });
      return own.length;
    },
    async backdate(chat, messageId, date) {
      const key = keys.message(chat, messageId);
      await until('flush', async () => ((await redis.pttl(key)) > 0 ? [] : [key]));
      const record = redated((await redis.getBuffer(key)) as Buffer, date);
      const { rowCount } = await postgres.query(
        'update messages set record = $4 where chat_id = $1 and user_id = $2 and message_id = $3',
        [chat.id, chat.user, messageId, record],
      );
      if (rowCount !== 1) throw new Error(`${key} is not in Postgres`);
      await redis.set(key, record, 'PX', 3_600_000);
    },
    async close() {
      for (const client of [redis, ...masters]) client.disconnect();
      await postgres.end();
    },
  };
}

/** Copies what a Redis holds into a file at one instant, and from a server into others. */
import { spawn } from 'node:child_process';
import type { RedisConnection } from './connection.js';

/** A copy that could not be made; the message says why. */
export class CopyError extends Error {}

/** Address, password and protocol of the server behind a connection: with Sentinels it is not the URL that names it. */
function argumentsFor({ url, client }: RedisConnection): { args: string[]; password: string } {
  const { protocol, username, password, hostname, port } = new URL(url);
  const { remoteAddress, remotePort } = client.stream as { remoteAddress?: string; remotePort?: number };
  const watched = client.options.sentinels !== null && client.options.sentinels !== undefined;
  const host = watched ? (remoteAddress ?? hostname) : hostname.replace(/^\[|\]$/g, '');
  return {
    args: [
      ...['-h', host, '-p', String(watched ? remotePort : port || 6379), '--no-auth-warning'],
      ...(username === '' ? [] : ['--user', decodeURIComponent(username)]),
      ...(protocol === 'rediss:' ? ['--tls', ...(watched ? ['--insecure'] : [])] : []),
    ],
    password: decodeURIComponent(password),
  };
}

/** Has a server send its content, as of one instant, into a file, as it would to a replica. `path` is where programs are. Throws a
 * CopyError. */
export function saveRdb(server: RedisConnection, file: string, path: string): Promise<void> {
  const { args, password } = argumentsFor(server);
  // Arguments are for everybody to see, the environment is not.
  const auth = password === '' ? {} : { REDISCLI_AUTH: password };
  const child = spawn('redis-cli', [...args, '--rdb', file], {
    env: { PATH: path, ...auth },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-500);
    });
  return new Promise((resolve, reject) => {
    child.once('error', () =>
      reject(new CopyError('redis-cli was not found: install it where the backup is made')),
    );
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new CopyError(`redis-cli could not copy Redis: ${said.trim()}`)),
    );
  });
}

const batchKeys = 500;

/** How many keys a server holds. */
export const countKeys = ({ client }: RedisConnection): Promise<number> => client.dbsize();

/**
 * Copies every key of a server to where `placeOf` says, with its time to live; what has no place is counted. Errors: what Redis
 * says, for one when a key is there already.
 */
export async function copyKeys(
  from: RedisConnection,
  placeOf: (key: string) => RedisConnection | null,
): Promise<{ readonly copied: number; readonly left: number }> {
  let copied = 0;
  let left = 0;
  for (let cursor = '0'; ; ) {
    const [next, keys] = await from.client.scan(cursor, 'COUNT', batchKeys);
    const placed = keys.filter((key) => placeOf(key) !== null);
    left += keys.length - placed.length;
    await Promise.all(
      placed.map(async (key) => {
        const [bytes, ttl] = await Promise.all([from.client.dumpBuffer(key), from.client.pttl(key)]);
        if (bytes === null || ttl === -2) return;
        await placeOf(key)?.client.restore(key, Math.max(0, ttl), bytes);
        copied++;
      }),
    );
    cursor = next;
    if (cursor === '0') return { copied, left };
  }
}

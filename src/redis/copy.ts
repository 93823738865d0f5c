/** Backs up a Redis server to a file, and copies keys between servers. */
import { spawn } from 'node:child_process';
import type { RedisConnection } from './connection.js';

export class CopyError extends Error {}

/**
 * Returns redis-cli arguments for a server. Uses the address of the open socket, because a URL with Sentinels contains
 * no address.
 */
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

/**
 * Saves a consistent snapshot of a server to a file. Receives the snapshot through the replication protocol. `path`
 * lists the folders in which to search for redis-cli, in the form of PATH. Throws a CopyError.
 */
export function saveRdb(server: RedisConnection, file: string, path: string): Promise<void> {
  const { args, password } = argumentsFor(server);
  // Passes the password in an environment variable, because other users of the machine can see command-line arguments.
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
      reject(new CopyError('redis-cli was not found: install it on the machine that makes the backup')),
    );
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new CopyError(`redis-cli could not copy Redis: ${said.trim()}`)),
    );
  });
}

const batchKeys = 500;

export const countKeys = ({ client }: RedisConnection): Promise<number> => client.dbsize();

/**
 * Copies every key, with its time to live, to the server that `placeOf` returns. If `placeOf` returns null, only counts
 * the key. Throws the errors of Redis, for example if a key already exists.
 */
export async function copyKeys(from: RedisConnection, placeOf: (key: string) => RedisConnection | null) {
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

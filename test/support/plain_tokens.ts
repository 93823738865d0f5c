/**
 * Searches for tokens in plain text in all data that a service wrote: its logs, the append-only file of Redis, every
 * row of Postgres.
 */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { createFinder } from '../../src/leaks/finder.js';

/**
 * The maximum number of rows that a search checks in one table. In a table with more rows, all rows are of the same
 * kind.
 */
const rowsMax = 20_000;

/** Called with each token that a search finds. */
type OnToken = (place: string, token: string) => void;
type Search = (onToken: OnToken) => Promise<void>;

/**
 * Returns a function that searches the rows that were written since its previous call. Each row names the transaction
 * that wrote it. Transactions that are open during a search may write rows that only the next search sees. The next
 * search therefore begins with the earliest of these transactions.
 */
function searchPostgres(url: string): Search {
  let open = '0';
  return async (onToken) => {
    const client = new pg.Client(url);
    await client.connect();
    try {
      const { rows: snapshots } = await client.query<{ open: string }>(
        'select pg_snapshot_xmin(pg_current_snapshot())::text as open',
      );
      // Leaves out empty tables, because most tables are empty in a test. Also leaves out partitioned tables, because
      // only their partitions have rows.
      const { rows: tables } = await client.query<{ name: string }>(
        `select quote_ident(relname) as name from pg_class
         where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0`,
      );
      for (const { name } of tables) {
        const finder = createFinder();
        const { rows } = await client.query({
          text: `select * from ${name} where xmin::text::bigint >= $1 limit ${rowsMax}`,
          values: [open],
          rowMode: 'array',
        });
        for (const row of rows as unknown[][]) {
          for (const value of row) {
            if (value === null || typeof value === 'number' || typeof value === 'boolean') continue;
            const bytes = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value) ?? '');
            for (const { token } of finder.take(bytes)) onToken(`table ${name}`, token);
          }
        }
      }
      open = snapshots[0]?.open ?? open;
    } finally {
      await client.end();
    }
  };
}

/**
 * Returns a function that searches the files of a folder. Each call searches only the bytes that were appended since
 * the previous call.
 */
function searchFolder(folder: string): Search {
  const read = new Map<string, { bytes: number; readonly finder: ReturnType<typeof createFinder> }>();
  return async (onToken) => {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const { size } = await stat(path);
      const known = read.get(path);
      const file = known && known.bytes <= size ? known : { bytes: 0, finder: createFinder() };
      read.set(path, file);
      for await (const chunk of createReadStream(path, { start: file.bytes })) {
        file.bytes += (chunk as Buffer).length;
        for (const { token } of file.finder.take(chunk as Buffer)) onToken(`file ${entry.name}`, token);
      }
    }
  };
}

/**
 * Returns a function that searches stored data for issued tokens. The function returns where a token was found, without
 * the secret part of the token. Each call searches only data that were written since the previous call. `folder` is the
 * data folder of Redis, if this test may read it. Stores that can no longer be read are skipped.
 */
export function createTokenSearch(
  databaseUrl: string,
  folder: string | undefined,
  roles: ReadonlyArray<{ readonly role: string; readonly leaked: readonly string[] }>,
  issued: Pick<ReadonlySet<string>, 'has'>,
): () => Promise<string[]> {
  const searches = [searchPostgres(databaseUrl), ...(folder === undefined ? [] : [searchFolder(folder)])];
  const written: Array<readonly [place: string, token: string]> = [];
  return async () => {
    for (const search of searches)
      await search((...found) => void written.push(found)).catch(() => undefined);
    const logged = roles.flatMap(({ role, leaked }) =>
      leaked.map((token) => [`log of ${role}`, token] as const),
    );
    const plain = [...logged, ...written].filter(([, token]) => issued.has(token));
    return [...new Set(plain.map(([place, token]) => `${place}: ${token.slice(0, token.indexOf(':'))}:…`))];
  };
}

/** Searches for tokens in plain text in all data that a service wrote: its logs, the append-only file of Redis, every row of Postgres. */
import pg from 'pg';
import { createFinder } from '../../src/leaks/finder.js';
import { scan } from '../../src/leaks/scan.js';

/** Checks at most this many rows of a table, because a larger table contains rows of only one kind. */
const rowsMax = 20_000;

async function inPostgres(url: string): Promise<Array<readonly [place: string, token: string]>> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `select quote_ident(relname) as name from pg_stat_user_tables where schemaname = 'public'`,
    );
    const found: Array<readonly [string, string]> = [];
    for (const { name } of tables) {
      const finder = createFinder();
      const { rows } = await client.query({
        text: `select * from ${name} limit ${rowsMax}`,
        rowMode: 'array',
      });
      for (const row of rows as unknown[][]) {
        for (const value of row) {
          if (value === null || typeof value === 'number' || typeof value === 'boolean') continue;
          const bytes = Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value) ?? '');
          for (const { token } of finder.take(bytes)) found.push([`table ${name}`, token]);
        }
      }
    }
    return found;
  } finally {
    await client.end();
  }
}

/**
 * Returns the places that contain issued tokens, without the secret part. `folder` is the data folder of Redis, if this
 * test may read it. Stores that can no longer be read are skipped.
 */
export async function findPlainTokens(
  databaseUrl: string,
  folder: string | undefined,
  roles: ReadonlyArray<{ readonly role: string; readonly leaked: readonly string[] }>,
  issued: Pick<ReadonlySet<string>, 'has'>,
): Promise<string[]> {
  const found: Array<readonly [place: string, token: string]> = [];
  for (const { role, leaked } of roles) for (const token of leaked) found.push([`log of ${role}`, token]);
  found.push(...(await inPostgres(databaseUrl).catch(() => [])));
  try {
    for await (const { place, token } of folder === undefined
      ? []
      : scan(folder, { onUnread: () => undefined }))
      found.push([`file ${place}`, token]);
  } catch {
    // The test has already removed this file.
  }
  const plain = found.filter(([, token]) => issued.has(token));
  return [...new Set(plain.map(([place, token]) => `${place}: ${token.slice(0, token.indexOf(':'))}:…`))];
}

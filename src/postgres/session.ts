/** Opens a single connection that belongs to no pool, for migrations and copies. */
import pg from 'pg';
import { addressOf } from '../rules/database_url.js';

/**
 * Connects to the first host in the URL that answers and is not a standby. The caller must close the connection. Throws
 * the error of the last host.
 */
export async function openSession(url: string, application: string, timeoutMs: number): Promise<pg.Client> {
  const { urls } = addressOf(url);
  for (let at = 0; ; at++) {
    const client = new pg.Client({
      connectionString: urls[at] as string,
      connectionTimeoutMillis: timeoutMs,
      application_name: application,
    });
    // Ignores the error event of a lost connection, because the running query also fails.
    client.on('error', () => {});
    try {
      await client.connect();
      if (urls.length === 1) return client;
      const { rows } = await client.query('select pg_is_in_recovery() as standby');
      if (!rows[0].standby) return client;
      await client.end();
      throw new Error('it is a standby');
    } catch (error) {
      if (at === urls.length - 1) throw error;
    }
  }
}

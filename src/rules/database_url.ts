/**
 * Parses a Postgres URL. The URL names one host, or several hosts of which one is the primary. A connection pooler may
 * be in front of the hosts.
 */

export interface PostgresAddress {
  readonly urls: readonly string[];
  /**
   * Whether the URL points to a pooler in transaction mode. Session settings then do not persist, and each transaction
   * may use another server connection.
   */
  readonly pooled: boolean;
  readonly named: boolean;
}

const form = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^@/?]+)(.*)$/;

/**
 * Parses `postgres://user:password@host1:5432,host2:5432/name`. `?pooler=unnamed` means a pooler in transaction mode.
 * `?pooler=prepared` means that this pooler also supports prepared statements (PgBouncer 1.21 or later with
 * `max_prepared_statements`). Returns null for any other text.
 */
export function parseAddress(text: string): PostgresAddress | null {
  const [, head = '', hosts = '', rest = ''] = form.exec(text) ?? [];
  const urls = hosts.split(',').map((host) => `${head}${host}${rest}`);
  if (!urls.every((url) => URL.canParse(url) && new URL(url).hostname !== '')) return null;
  const pooler = new URL(urls[0] as string).searchParams.get('pooler');
  if (pooler !== null && pooler !== 'unnamed' && pooler !== 'prepared') return null;
  return { urls, pooled: pooler !== null, named: pooler !== 'unnamed' };
}

/** Parses a URL from the settings, which have already been validated. Throws if the URL is invalid. */
export function addressOf(url: string): PostgresAddress {
  const address = parseAddress(url);
  // Omits the URL from the message, because the URL contains a password.
  if (address === null) throw new Error('not a Postgres URL');
  return address;
}

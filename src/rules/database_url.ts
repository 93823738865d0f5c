/** What a URL of Postgres names: one server or several of which one is the primary, and whether a pooler stands before them. */

export interface PostgresAddress {
  /** A URL for each host, in the order given. */
  readonly urls: readonly string[];
  /** A pooler in transaction mode: a session has no settings, and its server may change with each transaction. */
  readonly pooled: boolean;
  /** Whether statements may be prepared under a name. */
  readonly named: boolean;
}

const form = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^@/?]+)(.*)$/;

/**
 * Reads `postgres://user:password@host1:5432,host2:5432/name`. `?pooler=unnamed` is a pooler in transaction mode, `?pooler=prepared`
 * one that keeps prepared statements (PgBouncer 1.21 or later with `max_prepared_statements`). Null for anything else.
 */
export function parseAddress(text: string): PostgresAddress | null {
  const [, head = '', hosts = '', rest = ''] = form.exec(text) ?? [];
  const urls = hosts.split(',').map((host) => `${head}${host}${rest}`);
  if (!urls.every((url) => URL.canParse(url) && new URL(url).hostname !== '')) return null;
  const pooler = new URL(urls[0] as string).searchParams.get('pooler');
  if (pooler !== null && pooler !== 'unnamed' && pooler !== 'prepared') return null;
  return { urls, pooled: pooler !== null, named: pooler !== 'unnamed' };
}

/** The same, for a URL that settings have checked. Throws for another. */
export function addressOf(url: string): PostgresAddress {
  const address = parseAddress(url);
  // The text holds a password.
  if (address === null) throw new Error('not a URL of Postgres');
  return address;
}

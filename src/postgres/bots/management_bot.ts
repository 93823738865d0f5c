/** Statements that create the management bot and update its texts. It is a bot without owner and token. */

import { takeName } from '../accounts/users.js';
import { type Database, noteStale, one } from '../sql.js';
import type { BotCommand } from './bots.js';

/** Profile of the management bot. Texts are by language, '' for the default; commands are by scope and language. */
export interface ManagementIdentity {
  readonly username: string;
  readonly names: Readonly<Record<string, string>>;
  readonly descriptions: Readonly<Record<string, string>>;
  readonly shortDescriptions: Readonly<Record<string, string>>;
  readonly commands: Readonly<Record<string, readonly BotCommand[]>>;
}

const place = 'MANAGEMENT_BOT';
/** An arbitrary lock number, the same on every node. */
const advisoryLock = 7_261_530_115;

/**
 * Creates the bot unless it exists, and gives it this username and these texts unless it has them. Any number of
 * nodes may do this at once. Returns the bot's id. Error: `username_taken` by somebody else.
 */
export function ensureManagementBot(db: Database, identity: ManagementIdentity): Promise<number> {
  const { username, names, descriptions, shortDescriptions, commands } = identity;
  const said = [names, descriptions, shortDescriptions, commands].map((each) => JSON.stringify(each));
  return db.transaction(async (sql) => {
    await sql.query('select pg_advisory_xact_lock($1)', [advisoryLock]);
    const [known] = await sql.query<{ id: number; username: string; same: boolean }>(
      `select b.id, b.username,
              (b.names, b.descriptions, b.short_descriptions, b.commands) = ($2::jsonb, $3::jsonb, $4::jsonb, $5::jsonb) as same
         from installation i join bots b on b.id = i.value::bigint where i.name = $1`,
      [place, ...said],
    );
    if (known?.same && known.username === username) return known.id;
    const id = known?.id ?? (await one<{ id: number }>(sql, "select nextval('ids') as id")).id;
    if (known?.username.toLowerCase() !== username.toLowerCase()) {
      await takeName(sql, username, id);
      await sql.query('delete from names where owner = $1 and name <> $2', [id, username.toLowerCase()]);
    }
    await sql.query(
      `insert into bots (id, username, name, names, descriptions, short_descriptions, commands)
       values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (id) do update set username = $2, names = $4, descriptions = $5, short_descriptions = $6, commands = $7,
         version = nextval('control_versions'), descriptions_version = nextval('control_versions')`,
      [id, username, names[''], ...said],
    );
    await sql.query(
      'insert into installation (name, value) values ($1, $2) on conflict (name) do update set value = $2',
      [place, String(id)],
    );
    await noteStale(sql, [
      ['bot', id],
      ['descriptions', id],
      ['commands', id],
    ]);
    return id;
  });
}

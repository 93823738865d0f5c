/** SQL statements that create the management bot and update its texts. This bot has no owner and no token. */

import { takeName } from '../accounts/users.js';
import { type Database, noteStale } from '../sql.js';
import type { BotCommand } from './bots.js';

/** Texts by language ('' for the default), and commands by scope and language. */
export interface ManagementIdentity {
  readonly username: string;
  readonly names: Readonly<Record<string, string>>;
  readonly descriptions: Readonly<Record<string, string>>;
  readonly shortDescriptions: Readonly<Record<string, string>>;
  readonly commands: Readonly<Record<string, readonly BotCommand[]>>;
}

const place = 'MANAGEMENT_BOT';
/** The key of the advisory lock: an arbitrary number that must be equal on all nodes. */
const advisoryLock = 7_261_530_115;

/**
 * Creates the management bot if it does not exist. Updates its username and texts if they differ. Several nodes may
 * call this at the same time. Returns the bot's id. Error: `username_taken` if somebody else has the username.
 */
export function ensureManagementBot(db: Database, identity: ManagementIdentity): Promise<number> {
  const { username, names, descriptions, shortDescriptions, commands } = identity;
  const said = [names, descriptions, shortDescriptions, commands].map((each) => JSON.stringify(each));
  return db.transaction(async (sql) => {
    await sql.run`select pg_advisory_xact_lock(${advisoryLock})`;
    const [known] = await sql.query<{ id: number; username: string; same: boolean }>(
      `select b.id, b.username, (b.names, b.descriptions, b.short_descriptions, b.commands) =
         ($2::jsonb, $3::jsonb, $4::jsonb, $5::jsonb) as same
         from installation i join bots b on b.id = i.value::bigint where i.name = $1`,
      [place, ...said],
    );
    if (known?.same && known.username === username) return known.id;
    const id = known?.id ?? (await sql.value<number>`select nextval('ids')`);
    if (known?.username.toLowerCase() !== username.toLowerCase()) {
      await takeName(sql, username, id);
      await sql.run`delete from names where owner = ${id} and name <> ${username.toLowerCase()}`;
    }
    await sql.query(
      `insert into bots (id, username, name, names, descriptions, short_descriptions, commands)
       values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (id) do update set username = $2, names = $4, descriptions = $5, short_descriptions = $6,
         commands = $7, version = nextval('control_versions'), descriptions_version = nextval('control_versions')`,
      [id, username, names[''], ...said],
    );
    await sql.run`
      insert into installation (name, value) values (${place}, ${id}::text)
      on conflict (name) do update set value = excluded.value`;
    await noteStale(sql, [
      ['bot', id],
      ['descriptions', id],
      ['commands', id],
    ]);
    return id;
  });
}

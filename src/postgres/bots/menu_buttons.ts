/** SQL statements for the menu buttons of bots, and for the administrator rights that bots request. */
import { type Database, noteStale, type Sql } from '../sql.js';

export type MenuButton =
  | { readonly type: 'commands' }
  | { readonly type: 'web_app'; readonly text: string; readonly web_app: { readonly url: string } };

/**
 * Sets the default button, or removes it if `button` is null. People for whom the bot has set no other button see the
 * default button.
 */
export function setMenuButton(db: Database, bot: number, button: MenuButton | null): Promise<void> {
  return db.transaction(async (sql) => {
    await sql.run`
      update bots set menu_button = ${button && JSON.stringify(button)}::jsonb,
        descriptions_version = nextval('control_versions')
      where id = ${bot}`;
    await noteStale(sql, [['descriptions', bot]]);
  });
}

export const setMenuButtonOf = (
  db: Database,
  bot: number,
  user: number,
  button: MenuButton | null,
): Promise<void> =>
  db.transaction((sql) =>
    button === null
      ? sql.run`delete from bot_menu_buttons where bot_id = ${bot} and user_id = ${user}`
      : sql.run`
          insert into bot_menu_buttons (bot_id, user_id, button)
          values (${bot}, ${user}, ${JSON.stringify(button)}::jsonb)
          on conflict (bot_id, user_id) do update set button = excluded.button`,
  );

export const loadMenuButtonOf = (sql: Sql, bot: number, user: number) => sql.firstValue<MenuButton>`
  select button from bot_menu_buttons where bot_id = ${bot} and user_id = ${user}`;

/** Sets the rights that a bot requests when it becomes an administrator, for each type of chat. */
export function setDefaultRights(
  db: Database,
  bot: number,
  type: 'group' | 'channel',
  rights: readonly string[],
): Promise<void> {
  return db.transaction(async (sql) => {
    await sql.run`
      update bots set default_rights = default_rights || jsonb_build_object(${type}::text, ${JSON.stringify(rights)}::jsonb),
        descriptions_version = nextval('control_versions')
      where id = ${bot}`;
    await noteStale(sql, [['descriptions', bot]]);
  });
}

/** SQL statements for sticker sets. */
import { type Database, fragment, type Sql } from '../sql.js';

/** A sticker in a set. The key of its file in the blob store is `key`. */
export interface SetSticker {
  readonly key: string;
  /** The size of the file in bytes. */
  readonly size: number;
  readonly mime: string;
  /** The width and height of the picture in pixels. */
  readonly width: number;
  readonly height: number;
  readonly emoji: readonly string[];
  readonly keywords: readonly string[];
}

export interface StickerSet {
  readonly bot: number;
  /** The name in the spelling that the bot chose. */
  readonly name: string;
  readonly title: string;
  readonly stickers: readonly SetSticker[];
}

const columns = fragment('bot_id as bot, shown_name as name, title, stickers');

export const loadStickerSet = (sql: Sql, name: string) => sql.first<StickerSet>`
  select ${columns} from sticker_sets where name = lower(${name})`;

export const countStickerSets = (sql: Sql, bot: number) => sql.value<number>`
  select count(*)::int from sticker_sets where bot_id = ${bot}`;

/**
 * Stores a new set. Returns `taken` if another set has this name, `too_many` if the bot already has `max` sets, and
 * `gone` if the bot was deleted.
 */
export const addStickerSet = (
  db: Database,
  { bot, name, title, stickers }: StickerSet,
  max: number,
): Promise<'added' | 'taken' | 'too_many' | 'gone'> =>
  db.transaction(async (sql) => {
    // Locks the bot, so that concurrent calls count and add its sets one after another, and so that the bot cannot be
    // removed meanwhile.
    const isThere = await sql.some`
      select from bots where id = ${bot} and deleted_at is null for no key update`;
    if (!isThere) return 'gone';
    if ((await countStickerSets(sql, bot)) >= max) return 'too_many';
    const isAdded = await sql.some`
      insert into sticker_sets (name, bot_id, shown_name, title, stickers)
      values (lower(${name}), ${bot}, ${name}, ${title}, ${JSON.stringify(stickers)}::jsonb)
      on conflict do nothing returning 1`;
    return isAdded ? 'added' : 'taken';
  });

/**
 * Changes one of the bot's sets. `change` returns the new title and stickers, or throws. Returns false if the bot has
 * no set with this name.
 */
export const changeStickerSet = (
  db: Database,
  bot: number,
  name: string,
  change: (set: StickerSet) => Partial<Pick<StickerSet, 'title' | 'stickers'>>,
): Promise<boolean> =>
  db.transaction(async (sql) => {
    const set = await sql.first<StickerSet>`
      select ${columns} from sticker_sets where name = lower(${name}) and bot_id = ${bot} for update`;
    if (set === null) return false;
    const { title, stickers } = { ...set, ...change(set) };
    await sql.run`
      update sticker_sets set title = ${title}, stickers = ${JSON.stringify(stickers)}::jsonb
      where name = lower(${name})`;
    return true;
  });

export const removeStickerSet = (db: Database, bot: number, name: string): Promise<boolean> =>
  db.transaction(
    (sql) => sql.some`delete from sticker_sets where name = lower(${name}) and bot_id = ${bot} returning 1`,
  );

export const loadStickerSetNames = (sql: Sql, bot: number) => sql.column<string>`
  select name from sticker_sets where bot_id = ${bot} order by name`;

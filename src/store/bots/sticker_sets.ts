/** Stores sticker sets in Postgres. A set belongs to the bot that created it, even if the bot gets another owner. */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/bots/sticker_sets.js';
import type { Database } from '../../postgres/sql.js';
import { ruleLimits } from '../../rules/limits.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

export type { SetSticker, StickerSet } from '../../postgres/bots/sticker_sets.js';

type SetSticker = rows.SetSticker;

export type StickerSets = ReturnType<typeof createStickerSets>;

type Stickers = readonly SetSticker[];

function checkRoom(stickers: Stickers): void {
  if (stickers.length >= ruleLimits.stickers_per_set_max) fail('too_many_stickers');
}

async function contains(db: Database, bot: number, name: string, key: string): Promise<boolean> {
  const set = await rows.loadStickerSet(db, name);
  return set?.bot === bot && set.stickers.some((sticker) => sticker.key === key);
}

export function createStickerSets({ db }: StoreContext) {
  /** Changes the stickers in one of the bot's sets. Errors: `sticker_set_invalid`, and the errors of `change`. */
  async function change(bot: number, name: string, make: (stickers: Stickers) => Stickers): Promise<void> {
    const isFound = await rows.changeStickerSet(db, bot, name, ({ stickers }) => ({
      stickers: make(stickers),
    }));
    if (!isFound) fail('sticker_set_invalid');
  }

  /**
   * Changes one sticker in one of the bot's sets. `make` gets the sticker's position in the set. Error:
   * `sticker_set_not_modified` if the sticker is not in the set.
   */
  const changeOne = (
    bot: number,
    name: string,
    key: string,
    make: (list: Stickers, at: number) => Stickers,
  ) =>
    change(bot, name, (stickers) => {
      const at = stickers.findIndex((sticker) => sticker.key === key);
      return at < 0 ? fail('sticker_set_not_modified') : make(stickers, at);
    });

  return {
    /** Returns a sticker set, whichever bot owns it. Error: `sticker_set_invalid`. */
    async find(name: string): Promise<rows.StickerSet> {
      return (await rows.loadStickerSet(db, name)) ?? fail('sticker_set_invalid');
    },
    /** Returns whether the set `name` belongs to the bot and contains the file `key`. */
    contains: (bot: number, name: string, key: string) => contains(db, bot, name, key),
    /**
     * Checks whether the bot may add a set. Call this before files are stored for the set. `add` repeats the check.
     * Errors: `sticker_set_name_taken`, `too_many_sticker_sets`.
     */
    async checkNew(bot: number, name: string): Promise<void> {
      if ((await rows.loadStickerSet(db, name)) !== null) fail('sticker_set_name_taken');
      if ((await rows.countStickerSets(db, bot)) >= limits.sticker_sets_per_bot_max)
        fail('too_many_sticker_sets');
    },
    /**
     * Checks whether the bot may add a sticker to a set, or replace the sticker `old`. Call this before a file is
     * stored for the new sticker. The change itself repeats the check. Errors: `sticker_set_invalid`,
     * `too_many_stickers`, `sticker_set_not_modified`.
     */
    async checkChange(bot: number, name: string, old?: string): Promise<void> {
      const set = await rows.loadStickerSet(db, name);
      if (set?.bot !== bot) return fail('sticker_set_invalid');
      if (old === undefined) checkRoom(set.stickers);
      else if (!set.stickers.some(({ key }) => key === old)) fail('sticker_set_not_modified');
    },
    /** Errors: `sticker_set_name_taken`, `too_many_sticker_sets`, `unauthorized` if the bot was deleted. */
    async add(set: rows.StickerSet): Promise<void> {
      const outcome = await rows.addStickerSet(db, set, limits.sticker_sets_per_bot_max);
      if (outcome === 'gone') fail('unauthorized');
      if (outcome === 'taken') fail('sticker_set_name_taken');
      if (outcome === 'too_many') fail('too_many_sticker_sets');
    },
    /** Error: `sticker_set_invalid`. */
    async setTitle(bot: number, name: string, title: string): Promise<void> {
      if (!(await rows.changeStickerSet(db, bot, name, () => ({ title })))) fail('sticker_set_invalid');
    },
    /** Error: `sticker_set_invalid`. */
    async remove(bot: number, name: string): Promise<void> {
      if (!(await rows.removeStickerSet(db, bot, name))) fail('sticker_set_invalid');
    },
    /** Adds a sticker at the end of a set. Errors: `sticker_set_invalid`, `too_many_stickers`, `sticker_in_set`. */
    append: (bot: number, name: string, sticker: SetSticker) =>
      change(bot, name, (stickers) => {
        checkRoom(stickers);
        if (stickers.some(({ key }) => key === sticker.key)) fail('sticker_in_set');
        return [...stickers, sticker];
      }),
    /**
     * Moves a sticker to a position in its set, counted from 0. If the position is too large, the sticker goes to the
     * end.
     */
    move: (bot: number, name: string, key: string, place: number) =>
      changeOne(bot, name, key, (list, at) =>
        list.toSpliced(at, 1).toSpliced(place, 0, list[at] as SetSticker),
      ),
    take: (bot: number, name: string, key: string) =>
      changeOne(bot, name, key, (list, at) => list.toSpliced(at, 1)),
    update: (
      bot: number,
      name: string,
      key: string,
      fields: Partial<Pick<SetSticker, 'emoji' | 'keywords'>>,
    ) => changeOne(bot, name, key, (list, at) => list.with(at, { ...(list[at] as SetSticker), ...fields })),
    /** Replaces a sticker with another sticker at the same position. Error: `sticker_in_set`. */
    replace: (bot: number, name: string, key: string, sticker: SetSticker) =>
      changeOne(bot, name, key, (list, at) => {
        if (list.some((one, i) => i !== at && one.key === sticker.key)) fail('sticker_in_set');
        return list.with(at, sticker);
      }),
    /**
     * Yields the bot's sets in the order of their names, at most `sticker_sets_per_bot_max`. Keeps only one set in
     * memory.
     */
    async *listOf(bot: number): AsyncIterable<rows.StickerSet> {
      for (const name of await rows.loadStickerSetNames(db, bot)) {
        const set = await rows.loadStickerSet(db, name);
        if (set !== null) yield set;
      }
    },
  };
}

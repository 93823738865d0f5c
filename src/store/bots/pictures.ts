/**
 * Pictures of bots. Their files lie in the blob store, which has no transactions: a key is noted as unused before its file is
 * written, struck off in the transaction that refers to it, and noted again in the one that refers to another. So whatever
 * dies in between, a file stays only where something shows it.
 */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/bots/pictures.js';
import type { Database } from '../../postgres/sql.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import type { Bots } from './bots.js';

export type { BotPictures, PictureChange, StoredPicture } from '../../postgres/bots/pictures.js';

export interface Pictures {
  /** Notes the keys of files that are about to be written. */
  announce(keys: readonly string[]): Promise<void>;
  /** Sets a picture of a bot, or removes it with null. Errors: `bot_not_found`, `not_bot_owner`. */
  set(
    owner: number,
    bot: number,
    kind: keyof rows.BotPictures,
    picture: readonly rows.StoredPicture[] | null,
  ): Promise<rows.PictureChange>;
  /** Says that these files have been removed. */
  removed(keys: readonly string[]): Promise<void>;
  /** Removes files that have been unused for long enough, a batch at a time; returns how many. */
  sweep(remove: (key: string) => Promise<boolean>): Promise<number>;
}

/** `anew` is the database for what every run of a call does again. */
export function createPictures(
  context: StoreContext,
  anew: Database,
  control: ControlCopies,
  bots: Bots,
): Pictures {
  const { db } = context;
  return {
    announce: (keys) => rows.noteUnused(anew, keys),
    async set(owner, bot, kind, picture) {
      const change = await rows.setPicture(db, bot, owner, kind, picture);
      if (change === null) {
        await bots.owned(owner, bot);
        // Ownership has changed back and forth: whoever it belongs to may try again.
        return fail('not_bot_owner');
      }
      await control.refresh('descriptions', bot);
      return change;
    },
    removed: (keys) => rows.forgetUnused(anew, keys),
    async sweep(remove) {
      let all = 0;
      for (;;) {
        const gone = await rows.takeUnused(
          anew,
          limits.unused_file_age_ms_min,
          limits.unused_files_batch_max,
          remove,
        );
        all += gone;
        if (gone < limits.unused_files_batch_max) return all;
      }
    },
  };
}

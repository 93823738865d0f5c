/**
 * Pictures of bots. Their files are in the blob store, which has no transactions. A key is recorded as unused before
 * its file is written. The transaction that starts using the file removes the key from the unused ones, and the
 * transaction that stops using it adds it again. So after any crash the sweep finds every unused file.
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
  /** Records the keys of files about to be written. */
  announce(keys: readonly string[]): Promise<void>;
  /** Sets a picture of a bot; null removes it. Errors: `bot_not_found`, `not_bot_owner`. */
  set(
    owner: number,
    bot: number,
    kind: keyof rows.BotPictures,
    picture: readonly rows.StoredPicture[] | null,
  ): Promise<rows.PictureChange>;
  /** Records that these files have been removed. */
  removed(keys: readonly string[]): Promise<void>;
  /** Removes files that have been unused for long enough, in batches. Returns how many. */
  sweep(remove: (key: string) => Promise<boolean>): Promise<number>;
}

/** `rawDb` bypasses the once-per-request wrapper, for steps that must rerun on retry. */
export function createPictures(
  context: StoreContext,
  rawDb: Database,
  control: ControlCopies,
  bots: Bots,
): Pictures {
  const { db } = context;
  return {
    announce: (keys) => rows.noteUnused(rawDb, keys),
    async set(owner, bot, kind, picture) {
      const change = await rows.setPicture(db, bot, owner, kind, picture);
      if (change === null) {
        await bots.owned(owner, bot);
        // Ownership changed away and back meanwhile; the owner may try again.
        return fail('not_bot_owner');
      }
      await control.refresh('descriptions', bot);
      return change;
    },
    removed: (keys) => rows.forgetUnused(rawDb, keys),
    async sweep(remove) {
      let all = 0;
      for (;;) {
        const gone = await rows.takeUnused(
          rawDb,
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

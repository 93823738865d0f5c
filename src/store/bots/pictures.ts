/**
 * Manages pictures of bots. Their files are in the blob store, which has no transactions. A key is recorded as unused
 * before its file is written. The transaction that starts to use a file removes this record. The transaction that stops
 * using the file adds the record again. The sweep therefore finds every unused file after any crash.
 */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/bots/pictures.js';
import type { Database } from '../../postgres/sql.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { storeLimits as limits } from '../limits.js';
import type { Bots } from './bots.js';

export type { BotPictures, PictureChange, StoredPicture } from '../../postgres/bots/pictures.js';

export type Pictures = ReturnType<typeof createPictures>;

/** Takes `rawDb`, which bypasses the once-per-request wrapper, for steps that must rerun on retry. */
export function createPictures(context: StoreContext, rawDb: Database, control: ControlCopies, bots: Bots) {
  const { db } = context;
  return {
    /** Records keys. Call this before the files are written. */
    announce: (keys: readonly string[]) => rows.noteUnused(rawDb, keys),
    /** Sets a picture; null removes it. Errors: `bot_not_found`, `not_bot_owner`. */
    async set(
      owner: number,
      bot: number,
      kind: keyof rows.BotPictures,
      picture: readonly rows.StoredPicture[] | null,
    ): Promise<rows.PictureChange> {
      const change = await rows.setPicture(db, bot, owner, kind, picture);
      if (change === null) {
        await bots.owned(owner, bot);
        // Refuses if the bot was transferred to somebody else and back since the check. The owner may try again.
        return fail('not_bot_owner');
      }
      await control.refresh('descriptions', bot);
      return change;
    },
    removed: (keys: readonly string[]) => rows.forgetUnused(rawDb, keys),
    async sweep(remove: (key: string) => Promise<boolean>): Promise<number> {
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

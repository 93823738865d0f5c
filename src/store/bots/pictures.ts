/**
 * Manages bots' pictures. Their files are in the blob store, which has no transactions. Before a file is written, its
 * key is recorded as unused. The transaction that starts to use a file removes this record, and the transaction that
 * stops using the file adds it again. After any crash, the sweep therefore finds every unused file.
 */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/bots/pictures.js';
import type { Database } from '../../postgres/sql.js';
import { tellSettings } from '../chats/person_hints.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { directChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Bots } from './bots.js';

export type { BotPictures, PictureChange, StoredPicture } from '../../postgres/bots/pictures.js';

export type Pictures = ReturnType<typeof createPictures>;

/**
 * Steps that must run again on a retry use `rawDb`. It bypasses the wrapper that runs each transaction only once per
 * request.
 */
export function createPictures(context: StoreContext, rawDb: Database, control: ControlCopies, bots: Bots) {
  const { db } = context;
  return {
    /** Records the keys of new files as unused. Call this before the files are written. */
    announce: (keys: readonly string[]) => rows.noteUnused(rawDb, keys),
    /** Sets a bot's picture. Null removes the current picture. Errors: `bot_not_found`, `not_bot_owner`. */
    async set(
      owner: number,
      bot: number,
      kind: keyof rows.BotPictures,
      picture: readonly rows.StoredPicture[] | null,
    ): Promise<rows.PictureChange> {
      const change = await rows.setPicture(db, bot, owner, kind, picture);
      if (change === null) {
        await bots.owned(owner, bot);
        // Refuses the change if the bot has been transferred away and back in the meantime. The owner may try again.
        return fail('not_bot_owner');
      }
      await control.refresh('descriptions', bot);
      if (kind === 'avatar') await tellSettings(context, owner, directChat(bot, owner));
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

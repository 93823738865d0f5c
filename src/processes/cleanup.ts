/**
 * Runs the background cleanup of the role `flush`. Ends unused sessions. Removes old messages, old files, and the
 * remaining data of deleted accounts.
 */

import { journalLimits as limits } from '../journal/limits.js';
import { figuresOf } from '../obs/metrics.js';
import type { Removed } from '../store/accounts/retention.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

const day_ms = 86_400_000;

export function startCleanup({ config, time, log, store, files, figures, held }: Backends): Role {
  const { MESSAGE_DAYS, MEDIA_DAYS, SESSION_DAYS } = config;
  const counts = { accounts: 0, sessions: 0, messages: 0, files: 0 };
  figures.push(
    ...figuresOf(
      {
        petrel_ended_accounts_total: 'Deleted accounts whose last data this process removed.',
        petrel_unused_sessions_total: 'Sessions ended because they were not used for SESSION_DAYS.',
        petrel_aged_messages_total: 'Messages removed because of their age.',
        petrel_aged_files_total: 'Uploaded files removed because of their age.',
      },
      () => ({
        petrel_ended_accounts_total: counts.accounts,
        petrel_unused_sessions_total: counts.sessions,
        petrel_aged_messages_total: counts.messages,
        petrel_aged_files_total: counts.files,
      }),
    ),
  );
  const kinds: Array<readonly [keyof typeof counts, () => Promise<Removed | null>]> = [
    ['accounts', () => store.accounts.continueRemoval()],
    ['sessions', () => store.sessions.endUnused(SESSION_DAYS)],
  ];
  if (MESSAGE_DAYS !== undefined)
    kinds.push(['messages', () => store.retention.messages(MESSAGE_DAYS * day_ms)]);
  if (MEDIA_DAYS !== undefined)
    kinds.push(['files', () => store.retention.files(MEDIA_DAYS * day_ms, files)]);
  const stopping = new AbortController();

  async function end(kind: keyof typeof counts, piece: () => Promise<Removed | null>): Promise<void> {
    for (let more = true; more && !stopping.signal.aborted; ) {
      const done = await piece();
      counts[kind] += done?.removed ?? 0;
      more = done?.more ?? false;
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Keeps files during a drill (a test with a restored backup), because they may belong to the original
      // installation.
      for (const [kind, piece] of kinds.filter(([kind]) => kind !== 'files' || !held()))
        await end(kind, piece).catch((error: Error) =>
          log.warn({ reason: error.message }, `cleanup of ${kind} failed and will be retried`),
        );
      await time.sleep(limits.retention_look_ms, { signal: stopping.signal });
    }
  }
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Finds the previews of linked pages for people who read a message with a link (decision 0086). */
import type { LinkPreviews } from '../server/endpoint.js';
import { TimedTurns } from '../server/timed_turns.js';
import { createTurns } from '../server/turns.js';
import type { LinkPreview } from '../store/messages/link_previews.js';
import type { Store } from '../store/store.js';
import { previewLimits as limits } from './limits.js';
import { type LoadOptions, loadPreview } from './load.js';

export interface PreviewOptions extends LoadOptions {
  readonly store: Pick<Store, 'linkPreviews'>;
  /** Returns true during a drill (a test with a restored backup), when no pages are loaded. */
  readonly held: () => boolean;
}

/** The previews of one front, with figures about the loads. */
export interface FrontPreviews extends LinkPreviews {
  /** How many pages had a preview, how many had none, and how many could not be loaded. */
  readonly loads: Readonly<Record<'found' | 'none' | 'failed', number>>;
  /** How many calls wait for their turn to load a page. */
  waiting(): number;
}

/**
 * Creates the previews of one front. All fronts share the cache in Redis. While a page is being loaded, other calls for
 * the same page wait and share the result.
 */
export function createPreviews(options: PreviewOptions): FrontPreviews {
  const { store, held, time } = options;
  const turns = new TimedTurns(
    {
      atOnce: limits.preview_loads_at_once,
      waitingMax: limits.preview_loads_waiting_max,
      ownWaitingMax: limits.preview_loads_per_person_waiting_max,
      waitMsMax: limits.preview_wait_ms_max,
    },
    time,
  );
  const ofHost = createTurns(limits.preview_loads_per_host_at_once, 0);
  const underWay = new Map<string, Promise<LinkPreview | null>>();
  const loads = { found: 0, none: 0, failed: 0 };

  async function load(url: string): Promise<LinkPreview | null> {
    // Reads the cache again, because another call may have loaded the page while this call waited for its turn.
    const kept = await store.linkPreviews.read(url);
    if (kept !== undefined) return kept;
    const loaded = await loadPreview(url, options);
    loads[loaded === undefined ? 'failed' : loaded === null ? 'none' : 'found']++;
    const preview = loaded ?? null;
    await store.linkPreviews.keep(url, preview);
    return preview;
  }

  function begin(url: string): Promise<LinkPreview | null> {
    const loaded = load(url).finally(() => underWay.delete(url));
    underWay.set(url, loaded);
    return loaded;
  }

  return {
    async find(user, url) {
      const kept = await store.linkPreviews.read(url);
      if (kept !== undefined) return kept;
      if (held()) return null;
      const shared = underWay.get(url);
      if (shared !== undefined) return shared;
      await store.linkPreviews.take(user);
      const { preview } = await turns.run(user, async () => {
        // If another call is already loading this page, gives up this call's turn and waits for the other call's result
        // outside of the turn. The turn is then free for another page.
        const loading = underWay.get(url);
        if (loading !== undefined) return { preview: loading };
        return { preview: await ofHost.run(new URL(url).hostname, () => begin(url)) };
      });
      return preview;
    },
    loads,
    waiting: () => turns.waiting(),
  };
}

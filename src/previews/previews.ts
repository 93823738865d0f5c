/** Finds the previews of pages for the people who read a message with a link (decision 0086). */
import type { LinkPreviews } from '../server/endpoint.js';
import { createTurns } from '../server/turns.js';
import type { LinkPreview } from '../store/messages/link_previews.js';
import type { Store } from '../store/store.js';
import { previewLimits as limits } from './limits.js';
import { type LoadOptions, loadPreview } from './load.js';

export interface PreviewOptions extends LoadOptions {
  readonly store: Pick<Store, 'linkPreviews'>;
  /** Returns true during a drill, in which no page is loaded. */
  readonly held: () => boolean;
}

/**
 * Creates the previews of one front. All fronts share the cache in Redis. Calls for one page that is being loaded share
 * the result.
 */
export function createPreviews(options: PreviewOptions): LinkPreviews {
  const { store, held } = options;
  const ofPerson = createTurns(
    limits.preview_loads_per_person_at_once,
    limits.preview_loads_per_person_waiting_max,
  );
  const ofFront = createTurns(limits.preview_loads_at_once, limits.preview_loads_waiting_max);
  const underWay = new Map<string, Promise<LinkPreview | null>>();

  async function load(url: string): Promise<LinkPreview | null> {
    // Another call may have loaded the page while this call waited for its turn.
    const kept = await store.linkPreviews.read(url);
    if (kept !== undefined) return kept;
    const preview = await loadPreview(url, options);
    await store.linkPreviews.keep(url, preview);
    return preview;
  }

  function share(url: string): Promise<LinkPreview | null> {
    const shared = underWay.get(url);
    if (shared !== undefined) return shared;
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
      return ofPerson.run(user, () => ofFront.run(0, () => share(url)));
    },
  };
}

/**
 * Stores link previews of web pages in Redis. The cache has a fixed number of slots, and the hash of a page's URL
 * selects the slot. A newer preview replaces the one in its slot, so the cache cannot grow. Keys contain no URL.
 */
import { createHash } from 'node:crypto';
import { takeCalls } from '../core/buckets.js';
import { pack, unpack } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { storeLimits as limits } from '../limits.js';

/** The link preview of a web page. All texts are plain and short. */
export interface LinkPreview {
  /** The page's host after redirects. Includes the port unless it is the default port. */
  readonly host: string;
  readonly title: string;
  readonly description?: string;
  readonly site_name?: string;
}

/** The digest of a URL, and the preview. If the preview is null, the page has none. */
type Kept = readonly [digest: Buffer, preview: LinkPreview | null];

export type LinkPreviewCache = ReturnType<typeof createLinkPreviews>;

export function createLinkPreviews(context: StoreContext) {
  const { scripts, keys } = context;
  const placeOf = (url: string) => {
    const hash = createHash('sha256').update(url).digest();
    const slot = hash.readUInt32BE(0) % limits.link_preview_slots;
    const partition = slot % keys.partitions.count;
    return { digest: hash.subarray(4, 20), partition, at: { preview: keys.linkPreview(partition, slot) } };
  };

  return {
    /**
     * Returns a page's cached preview, null if the page is known to have none, or undefined if the page is not in the
     * cache.
     */
    async read(url: string): Promise<LinkPreview | null | undefined> {
      const { digest, partition, at } = placeOf(url);
      const { kept } = await scripts.call('messages/read_link_preview', partition, at, {});
      if (kept === null) return undefined;
      const [own, preview] = unpack<Kept>(kept);
      return digest.equals(own) ? preview : undefined;
    },
    /** Caches a preview, or the fact that a page has no preview. Caches nothing while Redis is full or unreachable. */
    async keep(url: string, preview: LinkPreview | null): Promise<void> {
      const { digest, partition, at } = placeOf(url);
      const kept = pack([digest, preview] satisfies Kept);
      const ttl_ms = preview === null ? limits.link_preview_absent_ms : limits.link_preview_kept_ms;
      if (kept.length > limits.link_preview_bytes_max) return;
      const args = { kept, ttl_ms: String(ttl_ms) };
      await scripts.call('messages/keep_link_preview', partition, at, args).catch(() => {});
    },
    /** Counts the loading of a page against the person who caused it. Error: `too_many_requests`. */
    take: (user: number) =>
      takeCalls(context, 'preview', user, {
        calls: limits.link_previews_per_person_max,
        intervalUs: 60_000_000 / limits.link_previews_per_person_max,
      }),
  };
}

/**
 * Computes the public names of posts, which look like UUIDs. A name is computed from the post id and a secret key, so
 * it does not reveal the id and needs no table.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secrets } from '../core/secrets.js';

export type PostIds = ReturnType<typeof createPostIds>;

/**
 * How many verified names are cached. Verifying a name needs two digests, which take more time than the rest of a
 * reaction.
 */
const named_max = 10_000;

const idBytes = 6;
const idMax = 2 ** 48;

export function createPostIds(secrets: Secrets) {
  const key = secrets.derive('names of posts');
  const digest = (purpose: string, bytes: Buffer) =>
    createHmac('sha256', key).update(purpose).update(bytes).digest();

  /**
   * Returns the last ten bytes of a name: 74 bits that authenticate the id, plus the version and variant bits of a
   * UUID.
   */
  function proof(id: Buffer): Buffer {
    const bytes = Buffer.from(digest('proof', id).subarray(0, 10));
    bytes[0] = ((bytes[0] as number) & 0x0f) | 0x80;
    bytes[2] = ((bytes[2] as number) & 0x3f) | 0x80;
    return bytes;
  }

  const mask = (id: Buffer, behind: Buffer) => {
    const by = digest('mask', behind);
    return Buffer.from(id.map((byte, i) => byte ^ (by[i] as number)));
  };

  /** Returns the public name of a post: a version 8 UUID. */
  function nameOf(post: number): string {
    const id = Buffer.alloc(idBytes);
    id.writeUIntBE(post, 0, idBytes);
    const behind = proof(id);
    const hex = Buffer.concat([mask(id, behind), behind]).toString('hex');
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  function prove(text: string): number | null {
    if (!/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text)) return null;
    const bytes = Buffer.from(text.replaceAll('-', ''), 'hex');
    const behind = bytes.subarray(idBytes);
    const id = mask(bytes.subarray(0, idBytes), behind);
    return timingSafeEqual(proof(id), behind) ? id.readUIntBE(0, idBytes) : null;
  }

  /** Caches verified names. Attackers cannot fill the cache, because invalid names are not stored. */
  const proven = new Map<string, number>();

  return {
    nameOf,
    /** Parses digits or a public name and returns the post id. Returns null for any other text. */
    parse(text: string): number | null {
      if (/^\d{1,15}$/.test(text)) {
        const id = Number(text);
        return id > 0 && id < idMax ? id : null;
      }
      const known = proven.get(text);
      if (known !== undefined) return known;
      const id = prove(text);
      if (id === null) return null;
      if (proven.size >= named_max) proven.clear();
      proven.set(text, id);
      return id;
    },
  };
}

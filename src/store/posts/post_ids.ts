/** The UUID-like name of a post, made of its id and the pepper alone: it tells nothing of the id, and needs no table. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secrets } from '../core/secrets.js';

export interface PostIds {
  /** A UUID of version 8. */
  nameOf(post: number): string;
  /** The id of a post as a path names it: its digits, or its name. Null for a text that names no post. */
  parse(text: string): number | null;
}

/** How many names are remembered with their ids: proving one takes two digests, more than all else that a reaction needs here. */
const named_max = 10_000;

const idBytes = 6;
const idMax = 2 ** 48;

export function createPostIds(secrets: Secrets): PostIds {
  const key = secrets.derive('names of posts');
  const digest = (purpose: string, bytes: Buffer) =>
    createHmac('sha256', key).update(purpose).update(bytes).digest();

  /** The last ten bytes: 74 bits that prove the id, with the version and the variant of a UUID between them. */
  function proof(id: Buffer): Buffer {
    const bytes = Buffer.from(digest('proof', id).subarray(0, 10));
    bytes[0] = ((bytes[0] as number) & 0x0f) | 0x80;
    bytes[2] = ((bytes[2] as number) & 0x3f) | 0x80;
    return bytes;
  }

  /** Hides the id, or shows what was hidden. */
  const mask = (id: Buffer, behind: Buffer) => {
    const by = digest('mask', behind);
    return Buffer.from(id.map((byte, i) => byte ^ (by[i] as number)));
  };

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

  /** Only what was proven, which stays true: what somebody invents takes no place. */
  const proven = new Map<string, number>();

  return {
    nameOf,
    parse(text) {
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

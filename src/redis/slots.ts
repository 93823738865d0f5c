/** Maps keys and channels to slots of a Redis Cluster, and parses the addresses of its servers. */

export const clusterSlots = 16_384;

/** Returns the CRC-16/XMODEM of a hash tag. Redis Cluster derives the tag's slot from this checksum. */
export function clusterSlot(tag: string): number {
  let crc = 0;
  for (let i = 0; i < tag.length; i++) {
    crc ^= tag.charCodeAt(i) << 8;
    for (let bit = 0; bit < 8; bit++)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % clusterSlots;
}

/** Returns the slot of a key. The key must begin with its hash tag. */
export function slotOf(key: string): number {
  return clusterSlot(key.slice(1, key.indexOf('}')));
}

/** Builds a server's URL. Protocol and password come from `model`. */
export function urlOf(model: string, host: string, port: number): string {
  const url = new URL(model);
  url.hostname = host.includes(':') ? `[${host}]` : host;
  url.port = String(port);
  return url.href;
}

/** Returns a URL without its password, for messages. */
export function shownUrl(url: string): string {
  const { protocol, hostname, port } = new URL(url);
  return `${protocol}//${hostname}:${port || 6379}`;
}

export interface Redirection {
  readonly kind: 'MOVED' | 'ASK';
  readonly slot: number;
  readonly url: string;
}

/**
 * Returns the server to which an error redirects, or null for any other error. If a server does not know its own
 * address, the error has no host. In this case, uses the host of `from`.
 */
export function readRedirection(refusal: string, from: string): Redirection | null {
  const match = /^(MOVED|ASK) (\d+) (\S*):(\d+)/.exec(refusal);
  if (!match) return null;
  const [, kind, slot, host = '', port] = match;
  const known = host !== '' && host !== '?' ? host : new URL(from).hostname.replace(/^\[|\]$/g, '');
  return { kind: kind as 'MOVED' | 'ASK', slot: Number(slot), url: urlOf(from, known, Number(port)) };
}

export interface SlotRange {
  readonly start: number;
  readonly end: number;
  readonly url: string;
}

export function readSlots(reply: unknown, from: string): SlotRange[] {
  const rows = reply as Array<[number, number, [string | null, number]]>;
  return rows.map(([start, end, [host, port]]) => {
    const known =
      host !== null && host !== '' && host !== '?' ? host : new URL(from).hostname.replace(/^\[|\]$/g, '');
    return { start: Number(start), end: Number(end), url: urlOf(from, known, Number(port)) };
  });
}

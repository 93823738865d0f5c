/**
 * Reads and changes the record of a bot's webhook routes (decision 0072). Postgres stores the record as encrypted JSON.
 */
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isSamePolicy, type RetryPolicy } from '../../rules/retry_policy.js';
import { pack } from './codec.js';

/** The settings that a bot requests for a route. A route takes all chats, the listed chats, or a share of all chats. */
export interface RouteSettings {
  readonly name: string;
  readonly url: string;
  readonly secretToken: string | null;
  /** The only certificate to trust, in PEM. If null, the public authorities are trusted. */
  readonly certificate: string | null;
  readonly maxConnections: number;
  readonly address: string | null;
  readonly retry: RetryPolicy | null;
  /** The mask of update kinds. */
  readonly mask: number;
  /** The listed chats, sorted, in the form of `chatText`. Null if the route lists no chats. */
  readonly chats: readonly string[] | null;
  /** The percentage of chats that the route takes, 1 to 100. */
  readonly percent: number;
  /** The commands that the route takes, in lowercase. Null or absent if the route does not depend on commands. */
  readonly commands?: RouteCommands | null;
}

/**
 * The commands that a route takes. `/name@username` counts as `/name` only if `username` is the bot's own username,
 * which is stored in lowercase.
 */
export interface RouteCommands {
  readonly names: readonly string[];
  readonly username: string;
}

export interface Route extends RouteSettings {
  readonly slot: number;
  /**
   * The Unix time in ms at which the route was added. If an update in this slot is older, it belongs to a deleted route
   * that used the slot before.
   */
  readonly made: number;
  /** The version at which the route was last set. */
  readonly set: number;
  /** The version at which the route's pending updates were last dropped on request, or 0. */
  readonly dropped: number;
}

/** A deleted route. Its queue may still have updates. */
export interface RemovedRoute {
  readonly slot: number;
  readonly set: number;
  readonly dropped: number;
}

export interface RouteRecord {
  readonly routes: readonly Route[];
  /** The most recently deleted routes. Their slots are not reused yet. */
  readonly removed: readonly RemovedRoute[];
}

export const noRoutes: RouteRecord = { routes: [], removed: [] };

/** The route that a call sets. If `mask` is null, the route keeps its current mask. */
export type RouteAsk = Omit<RouteSettings, 'mask'> & {
  readonly mask: number | null;
  /**
   * The route's position in the bot's list of routes, counted from 1. If null, an existing route keeps its position,
   * and a new route goes to the end.
   */
  readonly position: number | null;
  readonly drop: boolean;
};

const isSame = (was: Route, next: RouteSettings): boolean =>
  was.url === next.url &&
  was.secretToken === next.secretToken &&
  was.certificate === next.certificate &&
  was.maxConnections === next.maxConnections &&
  isSamePolicy(was.retry, next.retry);

function freeSlot({ routes, removed }: RouteRecord): number {
  const taken = new Set([...routes, ...removed].map(({ slot }) => slot));
  for (let slot = 1; ; slot++) if (!taken.has(slot)) return slot;
}

/**
 * Adds a route, or replaces the route with this name. If the URL, secret token, certificate, connections or retry
 * policy changes, the route counts as newly set, and its failed updates become due immediately. Error:
 * `too_many_routes`.
 */
export function putRoute(
  record: RouteRecord,
  { position, drop, ...ask }: RouteAsk,
  version: number,
  defaultMask: number,
  nowMs: number,
): RouteRecord {
  const at = record.routes.findIndex(({ name }) => name === ask.name);
  const was = record.routes[at];
  if (was === undefined && record.routes.length >= limits.routes_max) fail('too_many_routes');
  const settings = { ...ask, mask: ask.mask ?? was?.mask ?? defaultMask };
  const next: Route = {
    ...settings,
    slot: was?.slot ?? freeSlot(record),
    made: was?.made ?? nowMs,
    set: was !== undefined && isSame(was, settings) ? was.set : version,
    dropped: drop ? version : (was?.dropped ?? 0),
  };
  const routes = record.routes.filter(({ name }) => name !== ask.name);
  const place = position === null ? (was === undefined ? routes.length : at) : position - 1;
  routes.splice(place, 0, next);
  return { ...record, routes };
}

/** Removes the route with this name. Returns null if no route has this name. */
export function withoutRoute(
  record: RouteRecord,
  name: string,
  drop: boolean,
  version: number,
): RouteRecord | null {
  const was = record.routes.find((route) => route.name === name);
  if (was === undefined) return null;
  const kept = limits.route_slots_max - limits.routes_max;
  const removed = { slot: was.slot, set: version, dropped: drop ? version : was.dropped };
  return {
    routes: record.routes.filter((route) => route !== was),
    removed: [...record.removed, removed].slice(-kept),
  };
}

/** Serialises a record. Error: `routes_too_large` above limits.routes_bytes_max. */
export function writeRecord(record: RouteRecord): string {
  const text = JSON.stringify(record);
  return Buffer.byteLength(text) > limits.routes_bytes_max ? fail('routes_too_large') : text;
}

/** The maximum difference between the clocks of nodes, Redis and Postgres. */
export const routeSkewMs = 60_000;

/**
 * Finds the route that used a slot at a time (Unix time in ms). Needs the time, because a slot is reused some time
 * after its route was deleted.
 */
export const routeAt = (routes: readonly Route[], slot: number, timeMs: number): Route | undefined =>
  routes.find((route) => route.slot === slot && timeMs >= route.made - routeSkewMs);

export const readRecord = (text: string): RouteRecord => JSON.parse(text) as RouteRecord;

/** Packs the routes for `install_routes` in `lua/lib/routes.lua`. `version` is the version of the bot's settings. */
export function packRoutes({ routes }: RouteRecord, version: number, active: boolean): Buffer {
  const listing = new Map<string, number>();
  for (const [i, { chats }] of routes.entries())
    for (const chat of chats ?? []) listing.set(chat, (listing.get(chat) ?? 0) | (1 << (i + 1)));
  return pack({
    version,
    list: routes.map(({ slot, mask, name, percent, chats, set, commands }) => [
      ...[slot, mask, name, percent, chats !== null],
      ...[active ? String(version) : '', String(set)],
      // Puts a space on both sides of each name, so that the script can search the list for a whole name.
      ...(commands ? [` ${commands.names.join(' ')} `, commands.username] : []),
    ]),
    chats: [...listing].flat(),
  });
}

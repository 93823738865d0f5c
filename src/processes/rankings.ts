/**
 * Ranks the bots that have problems. Reads the control database and all shards. Each list has a limited length. If the
 * rows of a moved partition are in two databases, counts them only once.
 */

import * as rows from '../postgres/bots/ranking.js';
import { byShard, holding, type Shard } from '../postgres/shards.js';
import { ruleLimits } from '../rules/limits.js';
import { callLimits } from '../server/limits.js';
import type { Webhooks } from '../store/webhooks/webhooks.js';
import type { Backends } from './backends.js';

type Sources = Pick<Backends, 'shards' | 'keys'>;
type SourcesOfFailing = Sources & { readonly store: { readonly webhooks: Pick<Webhooks, 'hasRoutes'> } };

async function countsOf(
  { shards, keys }: Sources,
  ask: (shard: Shard) => Promise<readonly rows.Counted[]>,
): Promise<rows.Counted[]> {
  const asked = await Promise.all(
    holding(shards).map(async (shard) =>
      (await ask(shard)).filter(({ id }) => shards.of(keys.partitions.of(id)) === shard),
    ),
  );
  return asked.flat();
}

async function deliveredOf({ shards, keys }: Sources, ids: readonly number[]): Promise<rows.DeliveredRow[]> {
  const asked = byShard(shards, ids, keys.partitions.of);
  const found = await Promise.all([...asked].map(([{ db }, own]) => rows.loadDelivered(db, own)));
  return found.flat();
}

const mostFirst = (a: rows.Counted, b: rows.Counted) => b.count - a.count || a.id - b.id;

/**
 * Returns up to `limit` bots. Bots whose webhook is failing now come first, then the bots with the most failed
 * attempts. Loads at most `callLimits.bots_looked_at_max` failing bots.
 */
export async function mostFailing(sources: SourcesOfFailing, limit: number): Promise<number[]> {
  const { db } = sources.shards.control;
  const failing = await rows.loadFailing(db, callLimits.bots_looked_at_max);
  const failed = await countsOf(sources, (shard) =>
    rows.loadMostFailed(shard.db, callLimits.bots_looked_at_max),
  );
  const counts = new Map(failed.map(({ id, count }) => [id, count]));
  for (const { id, failed: count } of await deliveredOf(
    sources,
    failing.filter((bot) => !counts.has(bot)),
  ))
    counts.set(id, count);
  const first = failing.map((id) => ({ id, count: counts.get(id) ?? 0 })).sort(mostFirst);
  const isFailing = new Set(failing);
  const others = failed.filter(({ id }) => !isFailing.has(id));
  const ids = others.map(({ id }) => id);
  const hooked = new Set<number>();
  for (const { bot, routes } of await rows.hookedAmong(db, ids))
    if (routes === null || sources.store.webhooks.hasRoutes(bot, routes)) hooked.add(bot);
  const rest = others.filter(({ id }) => hooked.has(id)).sort(mostFirst);
  return [...first, ...rest].slice(0, limit).map(({ id }) => id);
}

export async function mostDead(sources: Sources, limit: number): Promise<number[]> {
  const letters = await countsOf(sources, (shard) => rows.loadDeadCounts(shard.db));
  return letters
    .sort(mostFirst)
    .slice(0, limit)
    .map(({ id }) => id);
}

export async function describeBots(
  sources: Sources,
  ids: readonly number[],
): Promise<Array<rows.RankedRow & Omit<rows.DeliveredRow, 'id'>>> {
  const [known, delivered] = await Promise.all([
    rows.loadRanked(sources.shards.control.db, ids),
    deliveredOf(sources, ids),
  ]);
  const counts = new Map(delivered.map((row) => [row.id, row]));
  const none = { delivered: 0, failed: 0, dead_letters: 0 };
  return known.map((row) => ({ ...row, ...(counts.get(row.id) ?? none), id: row.id }));
}

/** Counts webhooks and dead letters, at most `ruleLimits.dead_updates_counted_max` dead letters. */
export async function loadTotals(sources: Sources) {
  const [totals, letters] = await Promise.all([
    rows.loadTotals(sources.shards.control.db),
    countsOf(sources, (shard) => rows.loadDeadCounts(shard.db)),
  ]);
  const dead = letters.reduce((sum, { count }) => sum + count, 0);
  return { ...totals, dead_letters: Math.min(dead, ruleLimits.dead_updates_counted_max) };
}

/**
 * SQL statements for the unfinished move of partitions, and for the process that runs the move. There is at most
 * one unfinished move. All statements use the control database.
 */
import type { Queryable } from './pool.js';
import { takenOver } from './shard_copy.js';
import { fragment, plainSql } from './sql.js';

/**
 * The steps in order. The source serves the partitions up to and including the step `fence`, and the target from the
 * step `switch` on.
 */
export const moveSteps = ['copy', 'pause', 'fence', 'switch', 'clean'] as const;
export type MoveStep = (typeof moveSteps)[number];

export interface Move {
  readonly partitions: readonly number[];
  readonly source: number;
  readonly target: number;
  readonly step: MoveStep;
  readonly since: Date;
  /** The time of the last report from the process that runs the move. */
  readonly renewed_at: Date;
}

/** If the process that runs a move has not reported for this many seconds, another process may take over the move. */
const lease_s = 10;
export const moveRenewal_ms = 2_000;

const columns = fragment('partitions, source, target, step, since, renewed_at');

export const loadMove = (on: Queryable) => plainSql(on).first<Move>`select ${columns} from shard_moves`;

/** Adds a move. Returns null if another move has begun meanwhile. */
export const insertMove = (
  control: Queryable,
  { partitions, source, target, step }: Omit<Move, 'since' | 'renewed_at'>,
  runner: string,
) => plainSql(control).first<Move>`
  insert into shard_moves (partitions, source, target, step, runner)
  values (${partitions}, ${source}, ${target}, ${step}, ${runner})
  on conflict do nothing returning ${columns}`;

/** Takes over the move. Returns null if another process is running it, or if it is finished. */
export const claimMove = (control: Queryable, runner: string) => plainSql(control).first<Move>`
  update shard_moves set runner = ${runner}, renewed_at = now()
  where runner = ${runner} or renewed_at < now() - ${lease_s}::int * interval '1 second' returning ${columns}`;

export const renewMove = (control: Queryable, runner: string) => plainSql(control).run`
  update shard_moves set renewed_at = now() where runner = ${runner}`;

/** Records that the move has reached this step. Fails if another process has taken over the move. */
export async function advanceMove(control: Queryable, runner: string, step: MoveStep): Promise<void> {
  const done = await plainSql(control).some`
    update shard_moves set step = ${step}, renewed_at = now() where runner = ${runner} returning 1`;
  if (!done) throw takenOver();
}

/**
 * Prevents other processes from taking over the move until the transaction ends. Fails if another process has already
 * taken over the move.
 */
export async function holdMove(tx: Queryable, runner: string): Promise<void> {
  const held = await plainSql(tx).some`select from shard_moves where runner = ${runner} for update`;
  if (!held) throw takenOver();
}

export const endMove = (control: Queryable, runner: string) => plainSql(control).run`
  delete from shard_moves where runner = ${runner}`;

/**
 * Returns the running processes that have not reported that they know the shard. `follows` is false for a process that
 * has reported nothing about the shard map.
 */
export const nodesWithout = (control: Queryable, shard: number) =>
  plainSql(control).rows<{ readonly node: string; readonly follows: boolean }>`
    select n.node, s.node is not null as follows from redis_nodes n left join shard_nodes s on s.node = n.node
    where n.seen_at > now() - interval '10 seconds' and (s.node is null or not ${shard} = any(s.shards))`;

export const nodeEpochs = (control: Queryable) =>
  plainSql(control).rows<{ readonly node: string; readonly epoch: number }>`
    select node, epoch from shard_nodes order by node`;

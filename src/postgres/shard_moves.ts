/**
 * Statements on the unfinished move of partitions, of which there is at most one, and on the process that runs it.
 * They use the control database.
 */
import { type Pool, type Queryable, statement } from './pool.js';

/** Steps of a move, in this order. The source serves the partitions up to `fence`, and the target from `switch` on. */
export const moveSteps = ['copy', 'pause', 'fence', 'switch', 'clean'] as const;
export type MoveStep = (typeof moveSteps)[number];

export interface Move {
  /** Ids of the partitions, ascending. */
  readonly partitions: readonly number[];
  readonly source: number;
  readonly target: number;
  readonly step: MoveStep;
  readonly since: Date;
  /** Time of the last report of the process that runs the move. */
  readonly renewed_at: Date;
}

/** Seconds after its last report when a process no longer counts as running the move. */
const lease_s = 10;
export const moveRenewal_ms = 2_000;

const columns = 'partitions, source, target, step, since, renewed_at';
const readMove = statement('read_shard_move', `select ${columns} from shard_moves`);
const beginMove = statement(
  'begin_shard_move',
  `insert into shard_moves (partitions, source, target, step, runner) values ($1, $2, $3, $4, $5)
   on conflict do nothing returning ${columns}`,
);
const claim = statement(
  'claim_shard_move',
  `update shard_moves set runner = $1, renewed_at = now()
    where runner = $1 or renewed_at < now() - interval '${lease_s} seconds' returning ${columns}`,
);
const renew = statement('renew_shard_move', 'update shard_moves set renewed_at = now() where runner = $1');
const goOn = statement(
  'advance_shard_move',
  'update shard_moves set step = $2, renewed_at = now() where runner = $1',
);
const hold = statement('hold_shard_move', 'select from shard_moves where runner = $1 for update');
const end = statement('end_shard_move', 'delete from shard_moves where runner = $1');

/** Reads the unfinished move; null if there is none. */
export async function loadMove(sql: Queryable): Promise<Move | null> {
  return (await sql.query<Move>(readMove)).rows[0] ?? null;
}

/** Adds a move; returns null if another one was begun meanwhile. */
export async function insertMove(
  control: Pool,
  { partitions, source, target, step }: Omit<Move, 'since' | 'renewed_at'>,
  runner: string,
): Promise<Move | null> {
  return (await control.query<Move>(beginMove, [partitions, source, target, step, runner])).rows[0] ?? null;
}

/** Takes over the move; returns null while another process runs it, or when it is finished. */
export async function claimMove(control: Pool, runner: string): Promise<Move | null> {
  return (await control.query<Move>(claim, [runner])).rows[0] ?? null;
}

export async function renewMove(control: Pool, runner: string): Promise<void> {
  await control.query(renew, [runner]);
}

const lost = () => new Error('another process has taken over this move');

/** Records the next step. Fails when another process has taken the move over. */
export async function advanceMove(control: Pool, runner: string, step: MoveStep): Promise<void> {
  if ((await control.query(goOn, [runner, step])).count === 0) throw lost();
}

/** Prevents a takeover of the move until the transaction ends. Fails when another process has taken it over. */
export async function holdMove(tx: Queryable, runner: string): Promise<void> {
  if ((await tx.query(hold, [runner])).count === 0) throw lost();
}

export async function endMove(control: Pool, runner: string): Promise<void> {
  await control.query(end, [runner]);
}

const strangers = statement(
  'nodes_without_shard',
  `select n.node, s.node is not null as follows from redis_nodes n left join shard_nodes s on s.node = n.node
    where n.seen_at > now() - interval '10 seconds' and (s.node is null or not $1 = any(s.shards))`,
);

/**
 * Running processes that do not report that they know a shard; `follows` is false for those that report nothing about
 * the map.
 */
export async function nodesWithout(
  control: Pool,
  shard: number,
): Promise<ReadonlyArray<{ readonly node: string; readonly follows: boolean }>> {
  return (await control.query<{ node: string; follows: boolean }>(strangers, [shard])).rows;
}

const epochs = statement('shard_node_epochs', 'select node, epoch from shard_nodes order by node');

/** The map epoch that each process follows, including processes that ended without deregistering. */
export async function nodeEpochs(
  control: Queryable,
): Promise<ReadonlyArray<{ readonly node: string; readonly epoch: number }>> {
  return (await control.query<{ node: string; epoch: number }>(epochs)).rows;
}

/** Statements on the identity of an installation: which Redis its nodes use, as recorded in Postgres. */
import { limits } from '../limits.js';
import { type Queryable, statement } from './pool.js';

export interface PostgresIdentity {
  /** Id of the installation. */
  readonly id: string;
  /** How often the installation began to use an empty Redis; 0 before the first one. */
  readonly generation: number;
  /** True while nothing may be sent to receivers outside, until an operator ends the hold. */
  readonly held: boolean;
}

/** The last report of another node. */
export interface OtherNode {
  /** Generation of the Redis that the node uses. */
  readonly generation: number | null;
  /** Whether that Redis did not answer the node. */
  readonly away: boolean;
}

/** The Postgres history under which partition 0 was last opened. */
export interface OpenedAs {
  readonly run_id: string | null;
  readonly seal: string | null;
  readonly seal_run: string | null;
}

const columns = `(select value from installation where name = 'ID') as id,
  (select value::int from installation where name = 'REDIS_GENERATION') as generation,
  exists (select from installation where name = 'HELD') as held`;

const readIdentity = statement('read_identity', `select ${columns}`);

export async function loadIdentity(from: Queryable): Promise<PostgresIdentity> {
  const [row] = (await from.query<PostgresIdentity>(readIdentity)).rows;
  if (row === undefined || row.id === null) throw new Error('Postgres does not name its installation');
  return row;
}

/** Serialises changes to the generation. */
const lockGeneration = statement(
  'lock_redis_generation',
  "select 1 from installation where name = 'REDIS_GENERATION' for update",
);
const otherNodes = statement(
  'other_redis_nodes',
  "select generation, away from redis_nodes where node <> $1 and seen_at > now() - $2::int * interval '1 ms'",
);
const openedAs = statement(
  'partition_opened_as',
  'select run_id, seal, seal_run from partitions where partition = 0',
);

const allNodes = statement(
  'count_redis_nodes',
  "select count(*)::int as count from redis_nodes where seen_at > now() - $1::int * interval '1 ms'",
);

/** Counts roles that reported recently, including those that were killed since. */
export async function countNodes(on: Queryable): Promise<number> {
  const { rows } = await on.query<{ count: number }>(allNodes, [limits.redis_node_age_ms_max]);
  return rows[0]?.count ?? 0;
}

export async function lockIdentity(
  tx: Queryable,
  node: string,
): Promise<PostgresIdentity & { readonly others: readonly OtherNode[]; readonly opened: OpenedAs | null }> {
  await tx.query(lockGeneration);
  const identity = await loadIdentity(tx);
  const others = (await tx.query<OtherNode>(otherNodes, [node, limits.redis_node_age_ms_max])).rows;
  const opened = (await tx.query<OpenedAs>(openedAs)).rows[0] ?? null;
  return { ...identity, others, opened };
}

const setGeneration = statement(
  'set_redis_generation',
  "update installation set value = $1::int::text where name = 'REDIS_GENERATION'",
);

export async function saveGeneration(tx: Queryable, generation: number): Promise<void> {
  await tx.query(setGeneration, [generation]);
}

const note = statement(
  'note_redis_node',
  `with noted as (
     insert into redis_nodes as n (node, generation, away) values ($1, $2, $3)
     on conflict (node) do update set generation = excluded.generation, away = excluded.away, seen_at = now()
   )
   select ${columns}`,
);

/** Records the report of a node. Returns the id and generation that Postgres has now. */
export async function noteNode(on: Queryable, node: string, told: OtherNode): Promise<PostgresIdentity> {
  const [row] = (await on.query<PostgresIdentity>(note, [node, told.generation, told.away])).rows;
  return row as PostgresIdentity;
}

const forget = statement(
  'forget_redis_node',
  "delete from redis_nodes where node = $1 or seen_at < now() - interval '1 hour'",
);

/** Removes the report of a node, and those of nodes that crashed. */
export async function forgetNode(on: Queryable, node: string): Promise<void> {
  await on.query(forget, [node]);
}

const rename = statement(
  'rename_installation',
  `update installation set value = case name when 'ID' then gen_random_uuid()::text else $1::int::text end
    where name in ('ID', 'REDIS_GENERATION') returning name, value`,
);

const renameOne = statement(
  'rename_shard',
  "update installation set value = $1::int::text || ' ' || $2::text where name = 'SHARD'",
);

/** Gives the copy of a shard the id of the copy of its installation. */
export async function renameShard(on: Queryable, shard: number, installation: string): Promise<void> {
  await on.query(renameOne, [shard, installation]);
}

/** Gives a copy of an installation a new id, which is returned. */
export async function renameInstallation(on: Queryable, generation: number): Promise<string> {
  const { rows } = await on.query<{ name: string; value: string }>(rename, [generation]);
  return rows.find(({ name }) => name === 'ID')?.value as string;
}

const hold = statement(
  'hold_outgoing',
  "insert into installation (name, value) values ('HELD', now()::text) on conflict do nothing",
);
const release = statement('release_outgoing', "delete from installation where name = 'HELD' returning 1");

/** Holds all outgoing requests, or ends the hold. Returns whether it ended a hold. */
export async function holdOutgoing(on: Queryable, held: boolean): Promise<boolean> {
  const { rows } = await on.query(held ? hold : release);
  return rows.length > 0;
}

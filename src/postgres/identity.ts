/** Records which Redis the nodes of an installation use. */
import { postgresLimits as limits } from './limits.js';
import type { Queryable } from './pool.js';
import { fragment, plainSql } from './sql.js';

export interface PostgresIdentity {
  readonly id: string;
  /** The number of times that the installation has started with an empty Redis. */
  readonly generation: number;
  /** Whether requests to external receivers are held back until an operator releases them. */
  readonly held: boolean;
}

export interface OtherNode {
  readonly generation: number | null;
  readonly away: boolean;
}

/** Which Redis server last opened partition 0, as recorded in this Postgres. */
export interface OpenedAs {
  readonly run_id: string | null;
  readonly seal: string | null;
  readonly seal_run: string | null;
}

const columns = fragment(`(select value from installation where name = 'ID') as id,
  (select value::int from installation where name = 'REDIS_GENERATION') as generation,
  exists (select from installation where name = 'HELD') as held`);

export async function loadIdentity(from: Queryable): Promise<PostgresIdentity> {
  const row = await plainSql(from).one<PostgresIdentity>`select ${columns}`;
  if (row.id === null) throw new Error('Postgres does not name its installation');
  return row;
}

/** Counts the roles that reported recently, including roles that were killed after their last report. */
export const countNodes = (on: Queryable) => plainSql(on).value<number>`
  select count(*)::int from redis_nodes
  where seen_at > now() - ${limits.redis_node_age_ms_max}::int * interval '1 ms'`;

/**
 * Loads the identity and locks it until the transaction ends, so that no other transaction changes the generation
 * meanwhile.
 */
export async function lockIdentity(tx: Queryable, node: string) {
  const sql = plainSql(tx);
  await sql.run`select 1 from installation where name = 'REDIS_GENERATION' for update`;
  const identity = await loadIdentity(tx);
  const others = await sql.rows<OtherNode>`
    select generation, away from redis_nodes
    where node <> ${node} and seen_at > now() - ${limits.redis_node_age_ms_max}::int * interval '1 ms'`;
  const opened = await sql.first<OpenedAs>`
    select run_id, seal, seal_run from partitions where partition = 0`;
  return { ...identity, others, opened };
}

export const saveGeneration = (tx: Queryable, generation: number) => plainSql(tx).run`
  update installation set value = ${generation}::int::text where name = 'REDIS_GENERATION'`;

export const noteNode = (on: Queryable, node: string, { generation, away }: OtherNode) =>
  plainSql(on).one<PostgresIdentity>`
    with noted as (
      insert into redis_nodes as n (node, generation, away) values (${node}, ${generation}, ${away})
      on conflict (node) do update set generation = excluded.generation, away = excluded.away, seen_at = now()
    )
    select ${columns}`;

export const forgetNode = (on: Queryable, node: string) => plainSql(on).run`
  delete from redis_nodes where node = ${node} or seen_at < now() - interval '1 hour'`;

export const renameShard = (on: Queryable, shard: number, installation: string) => plainSql(on).run`
  update installation set value = ${shard}::int::text || ' ' || ${installation}::text where name = 'SHARD'`;

export async function renameInstallation(on: Queryable, generation: number): Promise<string> {
  await saveGeneration(on, generation);
  return plainSql(on).value<string>`
    update installation set value = gen_random_uuid()::text where name = 'ID' returning value`;
}

export async function holdOutgoing(on: Queryable, held: boolean): Promise<boolean> {
  const sql = plainSql(on);
  if (!held) return sql.some`delete from installation where name = 'HELD' returning 1`;
  await sql.run`insert into installation (name, value) values ('HELD', now()::text) on conflict do nothing`;
  return false;
}

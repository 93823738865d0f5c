/**
 * Checks the settings that must be equal on all nodes of an installation: partitions, keys and peppers. The first node
 * records them.
 */
import type { Config } from '../config/config.js';
import { noteInstallation, readInstallation } from '../postgres/accounts/rotation.js';
import type { Database, Sql } from '../postgres/sql.js';
import type { RedisConnection } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';
import { createSecrets, type Secrets } from '../store/core/secrets.js';

/** Thrown if a process cannot start until an operator changes a setting. The message names the change. */
export class StartError extends Error {}

const keyNote = 'TOKEN_KEYS ';

/** Compares the settings with those that the first node recorded. Throws a StartError. */
export function compare(noted: ReadonlyMap<string, string>, partitions: number, { checks }: Secrets): void {
  const count = noted.get('PARTITIONS') ?? String(partitions);
  if (count !== String(partitions))
    throw new StartError(`PARTITIONS must be ${count}, as when this installation was created`);
  const pepper = noted.get('TOKEN_PEPPER');
  if (pepper !== undefined && !checks.peppers.includes(pepper))
    throw new StartError('TOKEN_PEPPER does not contain the pepper that this installation uses');
  for (const [name, value] of noted) {
    if (!name.startsWith(keyNote)) continue;
    const id = name.slice(keyNote.length);
    const own = checks.keys.find((key) => key.id === id);
    if (own === undefined)
      throw new StartError(
        `TOKEN_KEYS lacks the key ${id}, which encrypts tokens of this installation: list it after the first key until ` +
          '"petrel tokens rotate-keys" reports that it is unused',
      );
    if (own.check !== value)
      throw new StartError(`TOKEN_KEYS ${id} is not the key that this installation has under this id`);
  }
}

type Given = Pick<Config, 'PARTITIONS'> & {
  readonly TOKEN_PEPPER: readonly string[];
  readonly TOKEN_KEYS: NonNullable<Config['TOKEN_KEYS']>;
};

/** Compares the settings with those recorded in Postgres. Changes nothing. Throws a StartError. */
export async function checkSettings(db: Sql, config: Given): Promise<void> {
  const { TOKEN_PEPPER: peppers, TOKEN_KEYS: ring, PARTITIONS: partitions } = config;
  compare(await readInstallation(db), partitions, createSecrets(peppers, ring));
}

/**
 * Compares the settings with those recorded in Postgres, and returns the secrets. Some secrets must survive a change of
 * the pepper. They are derived from the installation's first pepper, which Postgres stores encrypted. Throws a
 * StartError.
 */
export async function openSecrets(db: Database, config: Given): Promise<Secrets> {
  const { TOKEN_PEPPER: peppers, TOKEN_KEYS: ring, PARTITIONS: partitions } = config;
  const own = createSecrets(peppers, ring);
  const before = await readInstallation(db);
  compare(before, partitions, own);
  if (!before.has('TOKEN_ROOT')) {
    const pepper = before.get('TOKEN_PEPPER') ?? (own.checks.peppers[0] as string);
    const root = peppers[own.checks.peppers.indexOf(pepper)] as string;
    const box = own.seal(root, 'installation:root').toString('base64');
    const values = { PARTITIONS: String(partitions), TOKEN_PEPPER: pepper, TOKEN_ROOT: box };
    await noteInstallation(db, new Map(Object.entries(values)));
  }
  // Reads the recorded values again, because another node may have been first to record its values.
  const noted = await readInstallation(db);
  compare(noted, partitions, own);
  const root = own.open(Buffer.from(noted.get('TOKEN_ROOT') as string, 'base64'), 'installation:root');
  return createSecrets(peppers, ring, root);
}

/** Records the key with which this node encrypts. From then on, every node must have this key. Throws a StartError. */
export async function noteSecrets(db: Database, { checks }: Secrets): Promise<void> {
  const [first] = checks.keys;
  if (first === undefined) return;
  await noteInstallation(db, new Map([[`${keyNote}${first.id}`, first.check]]));
  const noted = (await readInstallation(db)).get(`${keyNote}${first.id}`);
  if (noted !== first.check)
    throw new StartError(`TOKEN_KEYS ${first.id} is not the key that this installation has under this id`);
}

/** Compares the number of partitions with the number recorded in this Redis. Throws a StartError. */
export async function checkPartitions(redis: RedisConnection['client'], keys: Keys): Promise<void> {
  const ownCount = String(keys.partitions.count);
  const read = () => redis.hget(keys.installation(), 'PARTITIONS');
  let inRedis = await read();
  // Only the first node writes the number of partitions to Redis. Other nodes only read the number, so that they can
  // start while Redis is full and refuses writes.
  if (inRedis === null) {
    await redis.hsetnx(keys.installation(), 'PARTITIONS', ownCount);
    inRedis = await read();
  }
  if (inRedis !== ownCount)
    throw new StartError(`PARTITIONS must be ${inRedis}, as when this Redis was set up`);
}

/** What all nodes of an installation must agree on: partitions, keys and peppers, as the first node noted them. */
import type { Config } from '../config/config.js';
import { noteInstallation, readInstallation } from '../postgres/accounts/rotation.js';
import type { Database, Sql } from '../postgres/sql.js';
import type { RedisConnection } from '../redis/connection.js';
import type { Keys } from '../store/core/keys.js';
import { createSecrets, type Secrets } from '../store/core/secrets.js';

/** A start that cannot succeed as things stand; the message is for the person who runs it. */
export class StartError extends Error {}

const keyNote = 'TOKEN_KEYS ';

/** Throws a StartError where what was noted does not go with what this node holds. */
export function compare(noted: ReadonlyMap<string, string>, partitions: number, { checks }: Secrets): void {
  const count = noted.get('PARTITIONS') ?? String(partitions);
  if (count !== String(partitions))
    throw new StartError(`PARTITIONS differs from what this installation was created with, ${count}`);
  const pepper = noted.get('TOKEN_PEPPER');
  if (pepper !== undefined && !checks.peppers.includes(pepper))
    throw new StartError(
      'TOKEN_PEPPER differs from what this installation was created with, or lacks what "petrel tokens rotate-keys" took up',
    );
  for (const [name, value] of noted) {
    if (!name.startsWith(keyNote)) continue;
    const id = name.slice(keyNote.length);
    const own = checks.keys.find((key) => key.id === id);
    if (own === undefined)
      throw new StartError(
        `TOKEN_KEYS lacks the key ${id}, under which this installation keeps tokens: list it behind the first one until ` +
          '"petrel tokens rotate-keys" says that nothing needs it',
      );
    if (own.check !== value)
      throw new StartError(`TOKEN_KEYS ${id} differs from what this installation was created with`);
  }
}

type Given = Pick<Config, 'PARTITIONS'> & {
  readonly TOKEN_PEPPER: readonly string[];
  readonly TOKEN_KEYS: NonNullable<Config['TOKEN_KEYS']>;
};

/** Compares the settings with those recorded in Postgres. Changes nothing. Errors: StartError. */
export async function checkSettings(db: Sql, config: Given): Promise<void> {
  const { TOKEN_PEPPER: peppers, TOKEN_KEYS: ring, PARTITIONS: partitions } = config;
  compare(await readInstallation(db), partitions, createSecrets(peppers, ring));
}

/**
 * The secrets of the settings, compared with what is noted. What must outlive a pepper is derived from the first pepper that the
 * installation had, which is kept sealed. Errors: StartError.
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
  // Of two first nodes the one that came later finds here what the other noted.
  const noted = await readInstallation(db);
  compare(noted, partitions, own);
  const root = own.open(Buffer.from(noted.get('TOKEN_ROOT') as string, 'base64'), 'installation:root');
  return createSecrets(peppers, ring, root);
}

/** Notes the key under which this node seals: from now on every node must hold it. Errors: StartError. */
export async function noteSecrets(db: Database, { checks }: Secrets): Promise<void> {
  const [first] = checks.keys;
  if (first === undefined) return;
  await noteInstallation(db, new Map([[`${keyNote}${first.id}`, first.check]]));
  const noted = (await readInstallation(db)).get(`${keyNote}${first.id}`);
  if (noted !== first.check)
    throw new StartError(`TOKEN_KEYS ${first.id} differs from what this installation was created with`);
}

/** Compares the partitions with those that this Redis was set up with. Errors: StartError. */
export async function checkPartitions(redis: RedisConnection['client'], keys: Keys): Promise<void> {
  const ownCount = String(keys.partitions.count);
  const read = () => redis.hget(keys.installation(), 'PARTITIONS');
  let inRedis = await read();
  // Only the first node writes: a full Redis refuses that, and must not keep others from starting.
  if (inRedis === null) {
    await redis.hsetnx(keys.installation(), 'PARTITIONS', ownCount);
    inRedis = await read();
  }
  if (inRedis !== ownCount)
    throw new StartError(`PARTITIONS differs from what this Redis was set up with (${inRedis})`);
}

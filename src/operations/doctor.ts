/** Prints the installation's state (task `doctor`): processes, versions, the journal, and findings. */

import { ratesOf, ratesText, redisOf } from '../config/config.js';
import { version } from '../config/version.js';
import { loadEngine } from '../http/engine.js';
import { journalState } from '../journal/state.js';
import { appliedVersion, schemaVersion } from '../postgres/migrate.js';
import { asDatabase } from '../postgres/sql.js';
import { loadStoredOverall } from '../postgres/stored_files.js';
import type { Backends } from '../processes/backends.js';
import { fullness, gather } from '../processes/facts.js';
import { type Facts, findingsOf } from '../processes/findings.js';
import { checkRedis } from '../redis/check.js';
import { shownUrl } from '../redis/slots.js';

const mebibytes = (bytes: number): string => `${Math.round((bytes * 10) / 1024 ** 2) / 10} MiB`;

/** Prints the findings. Returns whether one of them is a problem. */
function printFindings(facts: Facts, say: (line: string) => void): boolean {
  const found = findingsOf(facts);
  for (const { bad, what, todo } of found) {
    say(`${bad ? 'WRONG' : 'advice'}${' '.repeat(bad ? 8 : 7)}${what}`);
    if (todo !== '') say(`             → ${todo}`);
  }
  if (found.length === 0) say('well         no problems found');
  return found.some(({ bad }) => bad);
}

async function storedText({ config, pool }: Backends): Promise<string> {
  const stored = await loadStoredOverall(asDatabase(pool));
  if (stored === null) return 'none stored';
  const { bytes, owner, ownBytes } = stored;
  const max = config.UPLOAD_BYTES_TOTAL;
  const of = max > 0 ? ` of ${mebibytes(max)}` : ', without a limit';
  return `${mebibytes(bytes)} stored; the owner with most (${owner}) has ${mebibytes(ownBytes)}${of}`;
}

/**
 * Prints all findings. Returns true if no finding is a problem. A finding that is only advice does not count as a
 * problem. Throws an error if Redis or Postgres is unavailable.
 */
export async function runDoctor(backends: Backends): Promise<boolean> {
  const { config, connection, pool, shards } = backends;
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const engine = loadEngine();
  const state = await journalState(backends);
  say(`petrel       ${version}, Node.js ${process.versions.node}`);
  say(`engine       ${engine.name} ${engine.version}`);
  if (engine.note) say(`             the current engine does not run here: ${engine.note}`);
  for (const node of connection.nodes()) {
    const info = await node.client.info('server');
    const share = state.filter(({ partition }) => connection.at(partition) === node).length;
    const where = connection.clustered ? `${shownUrl(node.url)} with ${share} partitions, ` : '';
    say(
      `redis        ${where}${/redis_version:(\S+)/.exec(info)?.[1]}, history ${node.runId()?.slice(0, 8)}`,
    );
  }
  const [{ server_version } = { server_version: '?' }] = (
    await pool.query<{ server_version: string }>({ name: 'server_version', text: 'show server_version' })
  ).rows;
  say(
    `postgres     ${server_version}, schema ${await appliedVersion(config.DATABASE_URL as string)} of ${schemaVersion()}`,
  );
  for (const shard of shards.all.slice(1)) {
    const { rows } = await shard.pool.query<{ server_version: string }>({
      name: 'server_version',
      text: 'show server_version',
    });
    const schema = `${await appliedVersion(shard.url)} of ${schemaVersion()}`;
    say(
      `shard ${shard.id}      ${rows[0]?.server_version ?? '?'}, schema ${schema}, ${shards.owned(shard).length} partitions`,
    );
  }
  say(`rates        ${ratesText(ratesOf(config))}`);
  const waiting = state.reduce((sum, p) => sum + p.length, 0);
  const fullest = state.reduce((a, b) => (fullness(b) > fullness(a) ? b : a));
  const closed = state.filter((p) => p.run !== connection.at(p.partition)?.runId());
  say(
    `partitions   ${state.length}, ${closed.length === 0 ? 'all open' : `${closed.length} opened by the next change`}`,
  );
  say(
    `journal      ${waiting} entries waiting; the fullest partition (${fullest.partition}) has ${fullest.length} of ${fullest.highWater}, ${mebibytes(fullest.bytes)} of ${mebibytes(fullest.bytesMax)}`,
  );
  const last = state.reduce<Date | null>(
    (a, p) => (p.flushedAt && (!a || p.flushedAt > a) ? p.flushedAt : a),
    null,
  );
  say(`flushed      ${last ? last.toISOString() : 'never'}`);
  const { warnings } = await checkRedis(redisOf(config));
  const facts = await gather(backends, state, warnings, await backends.filesProblem());
  say(`quarantine   ${facts.databases.reduce((sum, { quarantined }) => sum + quarantined, 0)} entries`);
  say(`uploads      ${await storedText(backends)}`);
  return !printFindings(facts, say);
}

/** The task `doctor`: prints what runs, on which versions, and how far write-behind has come. */
import { loadEngine } from '../http/engine.js';
import { journalState } from '../journal/state.js';
import { appliedVersion, schemaVersion } from '../postgres/migrate.js';
import { shownUrl } from '../redis/slots.js';
import { version } from '../version.js';
import type { Backends } from './backends.js';

export async function runDoctor({ config, connection, runner, pool, keys }: Backends): Promise<void> {
  const say = (line: string) => process.stdout.write(`${line}\n`);
  const engine = loadEngine();
  const state = await journalState({ runner, pool, keys });
  say(`petrel       ${version}, Node.js ${process.versions.node}`);
  say(`engine       ${engine.name} ${engine.version}${engine.native ? '' : ' WITHOUT its native binary'}`);
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
  const waiting = state.reduce((sum, p) => sum + p.length, 0);
  const fullest = state.reduce((a, b) => (b.length > a.length ? b : a));
  const closed = state.filter((p) => p.run !== connection.at(p.partition)?.runId());
  say(
    `partitions   ${state.length}, ${closed.length === 0 ? 'all open' : `${closed.length} to be opened by the next change`}`,
  );
  say(
    `journal      ${waiting} entries wait; the fullest partition (${fullest.partition}) has ${fullest.length} of ${fullest.highWater}`,
  );
  const last = state.reduce<Date | null>(
    (a, p) => (p.flushedAt && (!a || p.flushedAt > a) ? p.flushedAt : a),
    null,
  );
  say(`flushed      ${last ? last.toISOString() : 'never'}`);
  const { rows } = await pool.query<{ count: number }>({
    name: 'quarantined',
    text: 'select count(*) as count from quarantine',
  });
  say(`quarantine   ${rows[0]?.count ?? 0} entries`);
}

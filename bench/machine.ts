import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { loadEngine } from '../src/http/engine.js';
import { placement } from './service/processes.js';
import type { RedisWatch } from './service/redis_watch.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

const said = (program: string, args: readonly string[]) =>
  spawnSync(program, args, { cwd: root, encoding: 'utf8' }).stdout?.trim() ?? '';

/** The measured commit, with a note if files differ from it. Empty without git. */
export function commitOf(): string {
  if (!existsSync(`${root}/.git`)) return '';
  const commit = said('git', ['rev-parse', '--short=10', 'HEAD']);
  return commit && `${commit}${said('git', ['status', '--porcelain']) ? ' with changes' : ''}`;
}

export async function machineOf(
  { client }: Pick<RedisWatch, 'client'>,
  postgres: string,
): Promise<Record<string, string | number>> {
  const engine = loadEngine();
  const [first] = cpus();
  const redis = /^redis_version:(\S+)/m.exec(await client.info('server'))?.[1] ?? '';
  return {
    cpu: first?.model.trim() || 'unknown',
    cores: cpus().length,
    memory_gb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.versions.node,
    engine: `${engine.name} ${engine.version}`,
    redis,
    postgres,
    placement,
    // Records the load average, because other programs on the machine affect all results.
    load_average: Number((loadavg()[0] ?? 0).toFixed(1)),
  };
}

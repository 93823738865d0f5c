/**
 * Prepares Redis for a clean shutdown (task `redis seal`). The next start of Redis can then prove that nothing was
 * lost.
 */
import { journalLimits } from '../journal/limits.js';
import { countNodes } from '../postgres/identity.js';
import { type Backends, StartError } from '../processes/backends.js';
import { processLimits as limits } from '../processes/limits.js';
import { readNodes } from '../processes/node.js';

/** Throws a StartError if another process of the installation is running. */
async function checkAlone(backends: Backends): Promise<void> {
  const { nodeKeys, pool } = backends;
  const found = await Promise.all([
    nodeKeys.others().then(({ length }) => length),
    readNodes(backends).then(({ length }) => length),
    countNodes(pool),
  ]);
  const running = Math.max(...found);
  if (running === 0) return;
  throw new StartError(
    `${running} ${running === 1 ? 'process' : 'processes'} of this installation ${running === 1 ? 'runs' : 'run'}: stop all roles ` +
      `first (one that was killed counts for ${limits.node_age_ms_max / 1_000} s)`,
  );
}

/** Closes all partitions. The next start opens them again and removes the seal. */
export async function sealRedis(backends: Backends, say: (line: string) => void): Promise<void> {
  const { recovery, keys, connection } = backends;
  await checkAlone(backends);
  await recovery.seal(
    Array.from({ length: keys.partitions.count }, (_, partition) => partition),
    true,
  );
  say(`sealed       ${keys.partitions.count} partitions on ${connection.nodes().length} Redis servers`);
  say('             stop Redis now with SHUTDOWN, and start Petrel only after Redis has started again');
  say(
    `             the seal holds for ${journalLimits.redis_seal_age_ms_max / 60_000} minutes, or until Postgres restarts`,
  );
}

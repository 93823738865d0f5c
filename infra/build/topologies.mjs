/**
 * Runs the tests of the whole service on each kind of Redis: one server, one with Sentinels, and a Redis Cluster.
 *
 *   npm run test:cluster                                     all three, about 50 minutes
 *   npm run test:cluster -- --only sentinel test/api/edits   only some of these tests
 *
 * Every test file that starts the service is included. It starts a Redis of the chosen kind. These tests are not
 * included:
 *
 * - tests of scripts, the store, deliveries and rules, which do not depend on the kind of Redis;
 * - fault tests that break a Redis of their own (test/faults: redis, token, cluster);
 * - tests of `npm start`, which has one Redis server;
 * - browser tests, which use the same calls as test/api.
 *
 * Tests of one kind alone (failovers, slot migration) are in test/redis and always run.
 */
import { parseArgs } from 'node:util';

const kinds = {
  single: { what: 'one Redis', env: { PETREL_TEST_REDIS: 'single' } },
  sentinel: { what: 'a Redis with Sentinels', env: { PETREL_TEST_REDIS: 'sentinel' } },
  cluster: { what: 'a Redis Cluster', env: { PETREL_TEST_REDIS: 'cluster' } },
  shards: { what: 'two databases by partition', env: { TEST_SHARDS: '2' } },
};
const folders = [
  'test/redis',
  'test/api',
  'test/clients',
  'test/interface',
  'test/manage',
  'test/leaks',
  'test/processes',
  'test/backup',
  'test/web',
  'test/docs/reference',
  'test/obs/traces',
  'test/proxy',
  'test/loadtest/remote',
  'test/support/service',
  'test/faults/processes',
  'test/faults/deliveries',
  'test/faults/receivers',
  'test/faults/postgres',
  'test/faults/rotation',
];

/** The folders of tests that do not depend on the kind of Redis. */
const shardFolders = [
  'test/store',
  'test/api/durable',
  'test/postgres/shards',
  'test/faults/shards',
  'test/faults/moving',
];

const usage = `npm run test:cluster -- [--only ${Object.keys(kinds).join('|')}] [test files]

  --only <kinds>   runs only these kinds, separated by commas; the default is all kinds
`;

/**
 * Returns the command `test:cluster`. It takes its arguments and resolves with an exit code. `runTests` runs the tests
 * with the given arguments and environment, and also resolves with an exit code.
 */
export const runTopologies = (runTests, say) => async (args) => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      only: { type: 'string', default: Object.keys(kinds).join(',') },
      help: { type: 'boolean', default: false },
    },
  });
  const wanted = values.only.split(',');
  if (values.help || !wanted.every((kind) => kind in kinds)) {
    say(usage);
    return values.help ? 0 : 1;
  }
  const failed = [];
  for (const kind of wanted) {
    const { what, env } = kinds[kind];
    say(`\nOn ${what}`);
    const files = positionals.length > 0 ? positionals : kind === 'shards' ? shardFolders : folders;
    if ((await runTests(files, env)) !== 0) failed.push(kind);
  }
  say(
    failed.length === 0 ? `\nThe same results on ${wanted.join(', ')}` : `\nFAILED on ${failed.join(', ')}`,
  );
  return failed.length === 0 ? 0 : 1;
};

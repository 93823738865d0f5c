/**
 * Runs the tests of the whole service on each kind of Redis: one server, one that Sentinels watch, and a Redis Cluster. Runs those of the
 * store over two databases besides the control database, in which tables of the other kind are not there.
 *
 *   npm run test:cluster                                     all four, some 60 minutes
 *   npm run test:cluster -- --only sentinel test/api/edits   some of it
 *
 * Each test file that starts the service starts a Redis of that kind for it, and all of these are among them. Not among them are tests of
 * scripts, of the store, of deliveries and of rules, which know nothing of the kind; those of faults that bring a Redis of their own to
 * break (test/faults: redis, token, cluster); `npm start`, which has one server; and browsers, which see what test/api sees. What a kind
 * has for itself (failovers, slots that move) is in test/redis and runs with each.
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

/** What knows nothing of the kind of Redis. */
const shardFolders = ['test/store', 'test/postgres/shards', 'test/faults/shards', 'test/faults/moving'];

const usage = `npm run test:cluster -- [--only ${Object.keys(kinds).join('|')}] [test files]

  --only <kinds>   separated by commas; all without it
`;

/** `runTests` runs the suite with arguments and environment and resolves with its exit code; so does what this returns. */
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

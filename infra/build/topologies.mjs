/**
 * Runs the tests of the whole service on each kind of Redis: one server, one that Sentinels watch, and a Redis Cluster.
 *
 *   npm run test:cluster                                     all three, some 50 minutes
 *   npm run test:cluster -- --only sentinel test/api/edits   some of it
 *
 * Each test file that starts the service starts a Redis of that kind for it, and all of these are among them. Not among them are tests of
 * scripts, of the store, of deliveries and of rules, which know nothing of the kind; those of faults that bring a Redis of their own to
 * break (test/faults: redis, token, cluster); `npm start`, which has one server; and browsers, which see what test/api sees. What a kind
 * has for itself (failovers, slots that move) is in test/redis and runs with each.
 */
import { parseArgs } from 'node:util';

const kinds = ['single', 'sentinel', 'cluster'];
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

const usage = `npm run test:cluster -- [--only ${kinds.join('|')}] [test files]

  --only <kinds>   separated by commas; all without it
`;

/** `runTests` runs the suite with arguments and environment and resolves with its exit code; so does what this returns. */
export const runTopologies = (runTests, say) => async (args) => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      only: { type: 'string', default: kinds.join(',') },
      help: { type: 'boolean', default: false },
    },
  });
  const wanted = values.only.split(',');
  if (values.help || !wanted.every((kind) => kinds.includes(kind))) {
    say(usage);
    return values.help ? 0 : 1;
  }
  const failed = [];
  for (const kind of wanted) {
    say(
      `\nOn ${kind === 'single' ? 'one Redis' : kind === 'sentinel' ? 'a Redis with Sentinels' : 'a Redis Cluster'}`,
    );
    const files = positionals.length > 0 ? positionals : folders;
    if ((await runTests(files, { PETREL_TEST_REDIS: kind })) !== 0) failed.push(kind);
  }
  say(
    failed.length === 0 ? `\nThe same results on ${wanted.join(', ')}` : `\nFAILED on ${failed.join(', ')}`,
  );
  return failed.length === 0 ? 0 : 1;
};

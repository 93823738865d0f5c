/**
 * Runs the tests of the whole service on each kind of Redis: one server, one that Sentinels watch, and a Redis Cluster.
 *
 *   npm run test:cluster                                     all three, some half an hour
 *   npm run test:cluster -- --only sentinel test/api/edits   some of it
 *
 * Each test file starts a Redis of that kind of its own. Tests of scripts, of the store and of rules know nothing of the kind and
 * are not among them; what a kind has for itself (failovers, slots that move) is in test/redis and runs with each.
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
  'test/roles',
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

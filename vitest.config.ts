/**
 * Defines two tiers. The long tier, `*.long.test.ts`, tests faults, topologies, long waits, installations and the
 * browser. The short tier, `*.test.ts`, has all other tests, and `ui/short`, the short form of the browser tests. `npm
 * test` runs the short tier, and `npm run test:all` runs both. A path as argument selects files of both tiers.
 *
 * Files of the short tier that run in one worker process share its modules and its running service
 * (`test/support/shared.ts`).
 */
import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const long = '**/*.long.test.ts';
const ui = 'test/ui/**/*.test.ts';

/** The slowest files, slowest first. They start first, so that no worker runs a slow file alone at the end. */
const longest = [
  'api/watched',
  'interface/single',
  'ui/short',
  'testmode/server',
  'api/inline',
  'store/consumers',
  'store/revocation',
  'faults/short',
  'api/durable',
  'delivery/routes',
  'api/leaks',
  'delivery/copies',
  'conformance/conformance',
  'api/operators',
  'api/results',
  'api/admins',
  'api/update_streams',
  'api/polls',
  'dev/supervisor',
  'lua/scripts',
  'store/reaction_counts',
  'journal/recovery',
  'clients/features',
  'clients/libraries',
  'api/webhook_owners',
  'dev/postgres',
  'http/waits',
  'faults/histories',
  'delivery/worker',
  'api/webhook_routes',
].map((name) => `test/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((file) => moduleId.endsWith(file));
      return index === -1 ? longest.length : index;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

const quick = process.env.PETREL_TEST_QUICK !== undefined;

/**
 * These tests install programs, need root or start their own topology. They run only if the variable beside the test is
 * set.
 */
const onlyWhenAsked = Object.entries({
  PETREL_TEST_IMAGE: 'test/deploy/*.long.test.ts',
  PETREL_TEST_FRESH: 'test/dev/fresh.long.test.ts',
  PETREL_TEST_PROXY: 'test/faults/rolling.long.test.ts',
  PETREL_TEST_REDIS: 'test/backup/topologies.long.test.ts',
  PETREL_TEST_OBSERVABILITY: 'test/observability/running.long.test.ts',
  PETREL_CHROMIUM: ui,
}).flatMap(([name, files]) => (process.env[name] ? [] : [files]));

const folder = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/**
 * In a run of all tests of the short tier, tests import the built files of `src` from `dist`, because a build always
 * comes first. Node loads these files itself, which takes less processor time than transforming the source files in
 * this process.
 */
const built: Plugin = {
  name: 'built',
  enforce: 'pre',
  resolveId(source, importer) {
    if (!quick || !source.startsWith('.') || importer === undefined) return undefined;
    const path = relative(folder('src'), join(dirname(importer), source));
    const file = join(folder('dist'), path);
    return path.startsWith('..') || !existsSync(file) ? undefined : { id: file, external: true };
  },
};

const timeouts = {
  testTimeout: 60_000,
  hookTimeout: 120_000,
  // `expect.poll` waits for up to 15 s, because a condition can take seconds to become true on a busy machine.
  expect: { poll: { timeout: 15_000 } },
};

function project(
  name: string,
  groupOrder: number,
  options: { include: string[]; exclude: string[]; maxWorkers: number } & Record<string, unknown>,
) {
  const exclude = [...options.exclude, ...onlyWhenAsked];
  const server = { deps: { external: [/\/dist\//] } };
  return {
    plugins: [built],
    test: { ...timeouts, ...options, name, exclude, server, sequence: { groupOrder } },
  };
}

export default defineConfig({
  plugins: [built],
  test: {
    // The global setup runs once for all projects.
    globalSetup: ['test/support/global_setup.ts'],
    // Allows time for each worker to stop its shared service.
    teardownTimeout: 60_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      project('side by side', 0, {
        include: ['test/**/*.test.ts'],
        // In the short tier, the short browser tests run in parallel with the other tests.
        exclude: [long, ...(quick ? [] : [ui])],
        // The limit of four workers is twice the number of cores of the target machines, because a test file mostly
        // waits for the processes that it started.
        maxWorkers: 4,
        isolate: false,
      }),
      project('ui', 1, { include: [ui], exclude: quick ? ['**'] : [], maxWorkers: 1 }),
      project('long', 2, { include: [long], exclude: [ui, ...(quick ? ['**'] : [])], maxWorkers: 1 }),
    ],
  },
});

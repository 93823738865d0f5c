/**
 * Two tiers. Names decide: `*.long.test.ts` holds faults, topologies, long waits, whole installations and pages in a browser beyond
 * the short form; `*.test.ts` holds the rest. `npm test` runs the second tier, `npm run test:all` both. A path runs what it names.
 *
 * Files of the short tier share their worker process: modules are imported once a worker, and `test/support/shared.ts` keeps a
 * running service for the next file.
 */
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const long = '**/*.long.test.ts';
const ui = 'test/ui/**/*.test.ts';

/** The files that take longest, in this order. They start first, so that no worker runs one of them alone at the end. */
const longest = [
  'interface/single',
  'ui/short',
  'api/identity',
  'store/revocation',
  'journal/failures',
  'journal/recovery',
  'api/admins',
  'loadtest/remote',
  'loadtest/bench',
  'faults/short',
  'api/leaks',
  'api/garbage',
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

/** It counts every command that a front sends to Redis. */
const alone = 'test/api/budget.test.ts';

const quick = process.env.PETREL_TEST_QUICK !== undefined;

/** These install programs, take root or start a topology of their own: the variable beside them asks for them. */
const onlyWhenAsked = Object.entries({
  PETREL_TEST_IMAGE: 'test/deploy/*.long.test.ts',
  PETREL_TEST_FRESH: 'test/dev/fresh.long.test.ts',
  PETREL_TEST_PROXY: 'test/faults/rolling.long.test.ts',
  PETREL_TEST_REDIS: 'test/backup/topologies.long.test.ts',
  PETREL_TEST_OBSERVABILITY: 'test/observability/running.long.test.ts',
  PETREL_CHROMIUM: ui,
}).flatMap(([name, files]) => (process.env[name] ? [] : [files]));

const timeouts = {
  testTimeout: 60_000,
  hookTimeout: 120_000,
  // On a crowded machine what is polled for may take seconds.
  expect: { poll: { timeout: 15_000 } },
};

function project(
  name: string,
  groupOrder: number,
  options: { include: string[]; exclude: string[]; maxWorkers: number } & Record<string, unknown>,
) {
  const exclude = [...options.exclude, ...onlyWhenAsked];
  return { test: { ...timeouts, ...options, name, exclude, sequence: { groupOrder } } };
}

export default defineConfig({
  test: {
    // Once for all projects, which therefore extend nothing.
    globalSetup: ['test/support/global_setup.ts'],
    // A worker stops its shared service at its end.
    teardownTimeout: 60_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      project('side by side', 0, {
        include: ['test/**/*.test.ts'],
        // In the short tier, the short browser tests run beside the others.
        exclude: [alone, long, ...(quick ? [] : [ui])],
        // Twice the two cores of the machines we plan for, because a file mostly waits for the processes it started.
        maxWorkers: 4,
        isolate: false,
      }),
      project('alone', 1, { include: [alone], exclude: [], maxWorkers: 1 }),
      project('ui', 2, { include: [ui], exclude: quick ? ['**'] : [], maxWorkers: 1 }),
      project('long', 3, { include: [long], exclude: [ui, ...(quick ? ['**'] : [])], maxWorkers: 1 }),
    ],
  },
});

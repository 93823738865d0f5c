/**
 * Most test files bring their own servers and wait more than they work, so three of them run side by side. Those that
 * stop processes, count what a machine does in a time, or own the machine in another way come after them, one by one.
 */
import { defineConfig } from 'vitest/config';

const alone = ['dev', 'faults', 'loadtest'].map((folder) => `test/${folder}/**/*.test.ts`);
alone.push('test/api/budget.test.ts', 'test/delivery/worker.test.ts');

/** Where a browser was found; the rest of its tests only when asked for. */
const browser = process.env.PETREL_CHROMIUM !== undefined;
const ui = process.env.PETREL_UI === 'long' ? 'test/ui/**/*.test.ts' : 'test/ui/short.test.ts';

/** What takes minutes, and programs that not every machine has: `npm run faults`, `test:image`, `test:proxy` and `test:observability` ask for these. */
const onlyWhenAsked = [
  // Six nodes and what follows take their time: the short form of what they show is in test/redis.
  ...(process.env.PETREL_FAULTS_SCALE ? [] : ['test/faults/cluster.test.ts']),
  // It mounts file systems of its own, which takes root.
  ...(process.env.PETREL_FAULTS_SCALE ? [] : ['test/faults/disk.test.ts']),
  ...(process.env.PETREL_TEST_IMAGE ? [] : ['test/deploy/{image,compose,operating}.test.ts']),
  // Installs all packages from the registry.
  ...(process.env.PETREL_TEST_FRESH ? [] : ['test/dev/fresh.test.ts']),
  ...(process.env.PETREL_FAULTS_SCALE || process.env.PETREL_TEST_PROXY
    ? []
    : ['test/faults/rolling.test.ts']),
  // A cluster, a server, and two installations: `npm run test:cluster` has them.
  ...(process.env.PETREL_TEST_REDIS ? [] : ['test/backup/topologies.test.ts']),
  ...(process.env.PETREL_TEST_OBSERVABILITY ? [] : ['test/observability/running.test.ts']),
];

export default defineConfig({
  test: {
    // Where dozens of processes share two cores, one of them may be held up for seconds. What fails twice is wrong; the report
    // names what was tried again.
    retry: 1,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'side by side',
          include: ['test/**/*.test.ts'],
          exclude: [...alone, ...onlyWhenAsked, 'test/ui/**'],
          globalSetup: ['test/support/global_setup.ts'],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          exclude: onlyWhenAsked,
          globalSetup: ['test/support/global_setup.ts'],
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
      ...(browser
        ? [
            {
              extends: true as const,
              test: {
                name: 'ui',
                include: [ui],
                globalSetup: ['test/support/global_setup.ts'],
                fileParallelism: false,
                expect: { poll: { timeout: 10_000 } },
                sequence: { groupOrder: 2 },
              },
            },
          ]
        : []),
    ],
  },
});

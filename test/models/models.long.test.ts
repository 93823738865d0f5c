/**
 * Explores all states of the five protocol models with SPIN. With each planted mutation, a model must violate an
 * invariant.
 */
import { describe, expect, test } from 'vitest';
import { canRun, explore, type Model, models, mutationsOf } from './spin.js';

/** The bounds of each model, in addition to the bounds in the file of the model. */
const bounds: Partial<Record<Model, readonly string[]>> = {
  token_lease: ['LEASE=2', 'CRASHES=0'],
  outbox: ['SENDS=3', 'CRASHES=0'],
  announcements: ['FLUSHERS=1', 'CHANGES=3'],
};

/** The time limit of an exploration. On a busy machine, an exploration takes ten times as long. */
const timeoutMs = 300_000;

describe.skipIf(!canRun('spin', 'gcc'))('models', () => {
  async function expectNoError(model: Model, definitions: readonly string[]): Promise<void> {
    const report = await explore(model, definitions);
    expect(report).toContain('Full statespace search');
    expect(report).toMatch(/errors: 0\b/);
    expect(report).not.toMatch(
      /max search depth too small|Search not completed|hash-compact|Bit statespace/i,
    );
  }

  test.each(models)(
    '%s: every state satisfies the invariants',
    async (model) => {
      await expectNoError(model, []);
      const further = bounds[model];
      if (further) await expectNoError(model, further);
    },
    timeoutMs,
  );

  const mutations = models.flatMap((model) => mutationsOf(model).map((name) => [model, name] as const));

  test.each(mutations)('%s: the mutation %s violates an invariant', async (model, name) => {
    expect(await explore(model, [name])).toContain('assertion violated');
  });

  test.each(models)('%s has mutations', (model) => {
    expect(mutationsOf(model).length).toBeGreaterThan(3);
  });
});

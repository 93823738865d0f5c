/** Checks the recorded calls of concurrent clients of two fronts. `histories.long.test.ts` also causes faults. */
import { expect, test } from 'vitest';
import type { Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { playRound } from './clients.js';

let service: Service;
onSharedService((shared) => {
  service = shared;
});

test('pins, reactions, tokens, owners and edits are linearizable through two fronts', async () => {
  const { verdicts, updates, arrivals } = await playRound(service, { seed: 1, answered: 100 });
  expect(verdicts.filter(({ result }) => result !== 'linearizable')).toEqual([]);
  expect(verdicts).toHaveLength(6);
  expect(updates).toEqual([]);
  expect(arrivals).toBeGreaterThan(20);
});

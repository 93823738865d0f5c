/** Tests that every parser takes linear time on its most expensive input, and stays below its maximum time per byte. */
import { expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';
import { type Attack, attacks } from './adversarial.cases.js';

const roundsMax = 12;
/**
 * A run that takes less than this time (in ns) always passes, because timers are too imprecise to measure such a short
 * run.
 */
const nothing_ns = 1_000_000;
/**
 * The limit for the time ratio of two inputs, one of which is four times as long as the other. A linear parser has a
 * ratio of 4, plus garbage collection. A quadratic parser has a ratio of 16.
 */
const growthMax = 9;

/** Measures the CPU time of one run in ns. CPU time hardly depends on other load of the machine. */
async function costOf(run: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  try {
    await run();
  } catch (error) {
    if (!(error instanceof ApiError) && !(error instanceof SyntaxError)) throw error;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) * 1_000;
}

async function measured({ bytesMax, nsPerByteMax, on }: Attack) {
  const [whole, quarter] = [on(bytesMax), on(Math.floor(bytesMax / 4))];
  let best = { whole: Number.POSITIVE_INFINITY, quarter: Number.POSITIVE_INFINITY };
  for (let round = 0; round < roundsMax; round++) {
    best = {
      quarter: Math.min(best.quarter, await costOf(quarter)),
      whole: Math.min(best.whole, await costOf(whole)),
    };
    const cheap = best.whole <= Math.max(bytesMax * nsPerByteMax, nothing_ns);
    if (cheap && (best.whole <= nothing_ns || best.whole <= growthMax * best.quarter)) break;
  }
  return best;
}

test.each(attacks)('the parser $parser takes linear time on $input', { timeout: 120_000 }, async (attack) => {
  const { whole, quarter } = await measured(attack);
  expect(whole / attack.bytesMax).toBeLessThanOrEqual(
    Math.max(attack.nsPerByteMax, nothing_ns / attack.bytesMax),
  );
  if (whole > nothing_ns) expect(whole / quarter).toBeLessThan(growthMax);
});

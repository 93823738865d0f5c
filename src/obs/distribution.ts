/**
 * Collects durations in histograms. A histogram is a single array without labels or objects, so that it can be used for
 * every request.
 */

/**
 * The upper bounds of the buckets in seconds. The fastest calls are answered from memory, and the slowest reach the
 * deadline of a webhook receiver.
 */
export const durationBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60,
] as const;

const boundsMs = durationBounds.map((seconds) => seconds * 1_000);

export class Distribution {
  /** The counts of the buckets, which are not cumulative. The last bucket has no upper bound. */
  readonly counts = new Float64Array(boundsMs.length + 1);
  sumMs = 0;

  /** Adds `weight` durations of `ms` each. Compares with the smallest bound first, because most durations are short. */
  observe(ms: number, weight = 1): void {
    let bucket = 0;
    while (bucket < boundsMs.length && ms > (boundsMs[bucket] as number)) bucket++;
    (this.counts[bucket] as number) += weight;
    this.sumMs += ms * weight;
  }
}

export class Distributions {
  readonly byName = new Map<string, Distribution>();

  of(name: string): Distribution {
    let known = this.byName.get(name);
    if (known === undefined) {
      known = new Distribution();
      this.byName.set(name, known);
    }
    return known;
  }
}

/** Counts events by a pair of names. Both names must come from fixed sets, because every pair stays in memory. */
export class Counts {
  readonly byName = new Map<string, Map<string | number, number>>();

  add(name: string, second: string | number, by = 1): void {
    let known = this.byName.get(name);
    if (known === undefined) {
      known = new Map();
      this.byName.set(name, known);
    }
    known.set(second, (known.get(second) ?? 0) + by);
  }

  *rows(): Iterable<readonly [labels: readonly string[], value: number]> {
    for (const [name, bySecond] of this.byName)
      for (const [second, value] of bySecond) yield [[name, String(second)], value];
  }
}

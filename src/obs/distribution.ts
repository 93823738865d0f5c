/** Counts of durations by bucket, cheap enough for every request: no labels, no objects, one array. */

/** Upper bounds of the buckets in seconds: from a call that is answered from memory to a receiver's last chance. */
export const durationBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60,
] as const;

const boundsMs = durationBounds.map((seconds) => seconds * 1_000);

export class Distribution {
  /** Of each bucket alone, the last one without a bound. */
  readonly counts = new Float64Array(boundsMs.length + 1);
  sumMs = 0;

  /** In milliseconds; one may stand for several. Most are short, so the buckets are tried from the shortest. */
  observe(ms: number, weight = 1): void {
    let bucket = 0;
    while (bucket < boundsMs.length && ms > (boundsMs[bucket] as number)) bucket++;
    (this.counts[bucket] as number) += weight;
    this.sumMs += ms * weight;
  }
}

/** Distributions by a name, which must come from a bounded set. */
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

/** Counts by two names, which must come from bounded sets. */
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

  /** As rows of a figure with two labels. */
  *rows(): Iterable<readonly [labels: readonly string[], value: number]> {
    for (const [name, bySecond] of this.byName)
      for (const [second, value] of bySecond) yield [[name, String(second)], value];
  }
}

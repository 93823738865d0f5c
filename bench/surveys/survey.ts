/** What is counted once instead of timed in rounds: each finding stands beside its goal. */

import type { Sizes } from '../scenarios/scenario.js';
import type { RedisWatch } from '../site/redis_watch.js';
import type { Site } from '../site/site.js';

export interface Finding {
  readonly proof: string;
  readonly what: string;
  readonly measured: string;
  readonly goal: string;
  readonly met: boolean;
}

export interface Survey {
  readonly name: string;
  run(site: Site, watch: RedisWatch, sizes: Sizes & { readonly rounds: number }): Promise<Finding[]>;
}

/** Measurements that are made once, not in alternating rounds. Each finding is shown with its goal, if it has one. */
import type { Finding } from '../../src/loadtest/results.js';
import type { LoadTool } from '../load/load.js';
import type { Sizes } from '../scenarios/scenario.js';
import type { BalancerKind } from '../site/balancer.js';
import type { RedisWatch } from '../site/redis_watch.js';
import type { Site } from '../site/site.js';

export interface SurveyOptions extends Sizes {
  readonly rounds: number;
  readonly seconds: number;
  readonly load: LoadTool;
  readonly connections: number;
  /** Maximum number of fronts. */
  readonly fronts: number;
  readonly balancers: readonly BalancerKind[];
  readonly progress: (line: string) => void;
}

export interface Survey {
  readonly name: string;
  run(site: Site, watch: RedisWatch, options: SurveyOptions): Promise<Finding[]>;
}

/**
 * Defines measurements that run once, not in alternating rounds. If a finding has a goal, the report shows the finding
 * and the goal.
 */
import type { Finding } from '../../src/loadtest/results.js';
import type { LoadTool } from '../load/load.js';
import type { Sizes } from '../scenarios/scenario.js';
import type { BalancerKind } from '../service/balancer.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';

export interface MeasurementOptions extends Sizes {
  readonly rounds: number;
  readonly seconds: number;
  readonly load: LoadTool;
  readonly connections: number;
  readonly fronts: number;
  readonly balancers: readonly BalancerKind[];
  readonly progress: (line: string) => void;
}

export interface Measurement {
  readonly name: string;
  run(service: Service, watch: RedisWatch, options: MeasurementOptions): Promise<Finding[]>;
}

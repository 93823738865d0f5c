/**
 * Holds the faults that tests request: delayed or failing calls by a bot, and delayed or failing deliveries to its
 * webhook.
 */
import { fail } from '../errors.js';
import { testModeLimits as limits } from './limits.js';

export interface Fault {
  /** How long to delay the call or delivery, in ms. */
  readonly delay_ms: number;
  /** The HTTP status of the answer that replaces the real one. If undefined, the call or delivery is only delayed. */
  readonly status: number | undefined;
  /** Seconds. */
  readonly retry_after: number | undefined;
  /** Whether the call or delivery still takes effect although its answer is replaced. */
  readonly applied: boolean;
}

interface Planned {
  /** A method in lower case, or `delivery`. */
  readonly on: string;
  readonly fault: Fault;
  times: number;
}

/** The value of `on` for faults in deliveries. For faults in calls, `on` is the name of a method. */
export const onDelivery = 'delivery';

/** The faults of all worlds. A world has at most `limits.world_faults_max`. */
export class Faults {
  readonly #planned = new Map<number, Planned[]>();

  /** Applies `fault` to the next `times` calls of `on`. Throws `too_many_requests`. */
  add(world: number, on: string, fault: Fault, times: number): void {
    const planned = this.#planned.get(world) ?? [];
    if (planned.length >= limits.world_faults_max) fail('too_many_requests', { retry_after: 1 });
    planned.push({ on: on.toLowerCase(), fault, times });
    this.#planned.set(world, planned);
  }

  /** Returns the fault of this call or delivery, if there is one. This uses up one of the fault's `times`. */
  take(world: number, on: string): Fault | undefined {
    const planned = this.#planned.get(world);
    const at = planned?.findIndex((each) => each.on === on.toLowerCase()) ?? -1;
    const found = planned?.[at];
    if (planned === undefined || found === undefined) return undefined;
    found.times -= 1;
    if (found.times === 0) planned.splice(at, 1);
    return found.fault;
  }

  /** Forgets the faults of a world. */
  clear(world: number): void {
    this.#planned.delete(world);
  }
}

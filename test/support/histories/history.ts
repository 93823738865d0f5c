/** Records the calls of concurrent clients and the answers to them, for checkers that run afterwards. */

/** A call by one client. Times are in ms by one monotonic clock. */
export interface Operation<I = unknown, O = unknown> {
  readonly client: string;
  /** The object that the call concerns. Objects are checked independently of each other. */
  readonly key: string;
  readonly input: I;
  /**
   * The answer, or null if the outcome is unknown. A call with an unknown outcome may take effect at any later time, or
   * never.
   */
  readonly output: O | null;
  readonly invokedAt: number;
  /** The time of the answer. Infinity if the outcome is unknown. */
  readonly answeredAt: number;
  /**
   * A call with an unknown outcome takes no effect after this time. If this time is absent, the call may take effect at
   * any time.
   */
  readonly effectBy?: number;
}

/** A history has at most this many calls. */
const operations_max = 100_000;

export class History {
  readonly operations: Operation[] = [];

  /**
   * Makes a call and records it. `run` returns the answer, null if the outcome is unknown, or undefined if the call was
   * not sent. Omits calls that were not sent. Also omits calls with an unknown outcome that change nothing (`reads`).
   */
  async record<O>(
    { client, key, input, reads = false }: { client: string; key: string; input: unknown; reads?: boolean },
    run: () => Promise<O | null | undefined>,
  ): Promise<O | null | undefined> {
    if (this.operations.length >= operations_max)
      throw new RangeError(`more than ${operations_max} operations`);
    const invokedAt = performance.now();
    const output = await run();
    if (output === undefined) return output;
    const answeredAt = output === null ? Number.POSITIVE_INFINITY : performance.now();
    if (output !== null || !reads)
      this.operations.push({ client, key, input, output, invokedAt, answeredAt });
    return output;
  }
}

/** Groups operations by key. */
export function byKey<I, O>(operations: readonly Operation<I, O>[]): Map<string, Operation<I, O>[]> {
  const groups = new Map<string, Operation<I, O>[]>();
  for (const operation of operations) {
    const group = groups.get(operation.key) ?? [];
    groups.set(operation.key, group);
    group.push(operation);
  }
  return groups;
}

/** Describes an operation in one line. Times are relative to `start`. */
export function describe(operation: Operation, start = 0): string {
  const at = (ms: number) => (Number.isFinite(ms) ? (ms - start).toFixed(1) : 'never');
  const { client, input, output, invokedAt, answeredAt } = operation;
  const answer = output === null ? 'unknown' : JSON.stringify(output);
  return `${at(invokedAt)} to ${at(answeredAt)} ms, ${client}: ${JSON.stringify(input)} → ${answer}`;
}

/**
 * Decides whether a history of concurrent calls is linearizable: whether there is an order in which each call takes
 * effect between its start and its answer, and in which a sequential model gives the same answers. The search uses the
 * algorithm of Wing and Gong with the memoisation of Lowe. Each key is checked separately.
 */
import { byKey, describe, type Operation } from './history.js';

/** The model of an object that has one caller at a time. A model returns new states and never modifies a state. */
export interface Model<I, O, S> {
  readonly start: S;
  /**
   * Returns the state after the operation, or null if the model does not allow its answer in this state. If the answer
   * is unknown, returns the state after the operation has taken effect. Returns null if the operation cannot take
   * effect in this state.
   */
  step(state: S, operation: Operation<I, O>): S | null;
  /** Returns a text that is equal for equal states. */
  name(state: S): string;
}

export interface Verdict {
  readonly key: string;
  /** `undecided` means that the search reached the maximum number of steps. */
  readonly result: 'linearizable' | 'violation' | 'undecided';
  readonly operations: number;
  readonly unknown: number;
  readonly steps: number;
  /**
   * The longest order of calls that was found, and the calls that do not fit into this order. The text is empty unless
   * the result is `violation`.
   */
  readonly explanation: string;
}

export interface Bounds {
  /** The maximum number of operations on one key. */
  readonly operations_max: number;
  /** How many times the model may be applied for one key. */
  readonly steps_max: number;
}

const bounds: Bounds = { operations_max: 10_000, steps_max: 2_000_000 };

/** A set of operations, the order in which they are applied, and the state after the last operation. */
interface Node<S> {
  readonly state: S;
  /** The index of the first operation that has an answer and is not in the set. */
  readonly first: number;
  /** The indices, above `first`, of the operations in the set that have an answer. In ascending order. */
  readonly ahead: readonly number[];
  /**
   * The indices of the operations in the set that have an unknown outcome and could still take effect. In ascending
   * order.
   */
  readonly used: readonly number[];
  /** The earliest possible time at which the last operation takes effect. */
  readonly time: number;
  /** The operation that was added last, and the node to which this operation was added. */
  readonly last: Operation | null;
  readonly before: Node<S> | null;
}

const insert = (list: readonly number[], value: number) => [...list, value].sort((a, b) => a - b);

class Search<I, O, S> {
  steps = 0;
  readonly #model: Model<I, O, S>;
  readonly #answered: readonly Operation<I, O>[];
  readonly #unknown: readonly Operation<I, O>[];
  #longest: Node<S>;

  constructor(model: Model<I, O, S>, operations: readonly Operation<I, O>[]) {
    const sorted = [...operations].sort((a, b) => a.invokedAt - b.invokedAt);
    this.#model = model;
    this.#answered = sorted.filter(({ output }) => output !== null);
    this.#unknown = sorted.filter(({ output }) => output === null);
    const start = { first: 0, ahead: [], used: [], time: Number.NEGATIVE_INFINITY };
    this.#longest = { ...start, state: model.start, last: null, before: null };
  }

  run(stepsMax: number): Verdict['result'] {
    const stack = [this.#longest];
    const known = new Set<string>();
    for (;;) {
      const node = stack.pop();
      if (!node) return 'violation';
      // Calls with an unknown outcome may be absent from the order, because such calls may never take effect.
      if (node.first === this.#answered.length) return 'linearizable';
      if (this.#size(node) > this.#size(this.#longest)) this.#longest = node;
      for (const next of this.#successors(node)) {
        const name = `${next.first} ${next.ahead} ${next.used} ${this.#model.name(next.state)}`;
        if (known.has(name)) continue;
        known.add(name);
        stack.push(next);
      }
      if (this.steps > stepsMax) return 'undecided';
    }
  }

  #size = ({ first, ahead }: Node<S>) => first + ahead.length;

  /**
   * Returns the pending operations that may come next in the order. An operation may come next if its call began before
   * every answer of the other pending operations.
   */
  #candidates(node: Node<S>): { readonly answered: number[]; readonly unknown: number[] } {
    const ahead = new Set(node.ahead);
    const pending: number[] = [];
    let until = Number.POSITIVE_INFINITY;
    for (let i = node.first; i < this.#answered.length; i++) {
      const { invokedAt, answeredAt } = this.#answered[i] as Operation;
      if (invokedAt > until) break;
      if (ahead.has(i)) continue;
      pending.push(i);
      until = Math.min(until, answeredAt);
    }
    const inTime = (operation: Operation) => operation.invokedAt <= until;
    const used = new Set(node.used);
    return {
      answered: pending.filter((i) => inTime(this.#answered[i] as Operation)),
      unknown: [...this.#unknown.keys()].filter(
        (i) => !used.has(i) && this.#isOpen(i, node.time) && inTime(this.#unknown[i] as Operation),
      ),
    };
  }

  /** Leaves out operations that can no longer take effect, so that more nodes are equal. */
  #open = (used: readonly number[], time: number) => used.filter((i) => this.#isOpen(i, time));

  /** Returns whether an operation with an unknown outcome can take effect at `time` or later. */
  #isOpen(i: number, time: number): boolean {
    return (this.#unknown[i]?.effectBy ?? Number.POSITIVE_INFINITY) >= time;
  }

  /** Returns the nodes that extend `node` by one operation. The search tries the last returned node first. */
  #successors(node: Node<S>): Node<S>[] {
    const { answered, unknown } = this.#candidates(node);
    const found: Node<S>[] = [];
    const tried = new Set<string>();
    for (const i of unknown) {
      const operation = this.#unknown[i] as Operation<I, O>;
      // Equal calls are interchangeable, so only the earliest of them is tried.
      const input = JSON.stringify(operation.input);
      if (tried.has(input)) continue;
      tried.add(input);
      const state = this.#apply(node, operation);
      if (state === null || this.#model.name(state) === this.#model.name(node.state)) continue;
      const time = Math.max(node.time, operation.invokedAt);
      const used = insert(this.#open(node.used, time), i);
      found.push({ ...node, state, used, time, last: operation, before: node });
    }
    const byAnswer = (i: number) => (this.#answered[i] as Operation).answeredAt;
    for (const i of answered.sort((a, b) => byAnswer(b) - byAnswer(a))) {
      const operation = this.#answered[i] as Operation<I, O>;
      const state = this.#apply(node, operation);
      if (state === null) continue;
      const time = Math.max(node.time, operation.invokedAt);
      const used = this.#open(node.used, time);
      found.push({ ...this.#advance(node, i), state, used, time, last: operation, before: node });
    }
    return found;
  }

  #apply(node: Node<S>, operation: Operation<I, O>): S | null {
    this.steps++;
    return this.#model.step(node.state, operation);
  }

  #advance(node: Node<S>, added: number): Pick<Node<S>, 'first' | 'ahead'> {
    if (added !== node.first) return { first: node.first, ahead: insert(node.ahead, added) };
    let first = added + 1;
    let gone = 0;
    while (node.ahead[gone] === first) {
      first++;
      gone++;
    }
    return { first, ahead: node.ahead.slice(gone) };
  }

  /** Describes the end of the longest order, and the calls that do not fit after this order. */
  explain(): string {
    const start = this.#answered[0]?.invokedAt ?? 0;
    const order: string[] = [];
    for (let node: Node<S> | null = this.#longest; node?.last && order.length < 12; node = node.before)
      order.unshift(describe(node.last, start));
    const { answered, unknown } = this.#candidates(this.#longest);
    const stuck = [
      ...answered.map((i) => this.#answered[i] as Operation),
      ...unknown.map((i) => this.#unknown[i] as Operation),
    ];
    return [
      `state ${this.#model.name(this.#longest.state)} after:`,
      ...order.map((line) => `  ${line}`),
      'none of these fits next:',
      ...stuck.slice(0, 20).map((each) => `  ${describe(each, start)}`),
    ].join('\n');
  }
}

/** Checks each key of a history. Throws a RangeError if a key has too many operations. */
export function checkLinearizable<I, O, S>(
  model: Model<I, O, S>,
  operations: readonly Operation<I, O>[],
  { operations_max, steps_max }: Bounds = bounds,
): Verdict[] {
  return [...byKey(operations)].map(([key, own]) => {
    if (own.length > operations_max)
      throw new RangeError(`${key} has ${own.length} operations, and ${operations_max} are allowed`);
    const search = new Search(model, own);
    const result = search.run(steps_max);
    return {
      key,
      result,
      operations: own.length,
      unknown: own.filter(({ output }) => output === null).length,
      steps: search.steps,
      explanation: result === 'violation' ? `${key}: ${search.explain()}` : '',
    };
  });
}

/** Gives the checker histories for which the correct verdict is known. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { numbersFrom } from '../workload.js';
import { History, type Operation } from './history.js';
import { checkLinearizable, type Model } from './linearizable.js';
import {
  edits,
  ownership,
  type PinInput,
  type PinOutput,
  pins,
  type ReactionOutput,
  type RegisterInput,
  reactionSteps,
  reactions,
  register,
  replacementSteps,
  tokens,
} from './models.js';

const never = Number.POSITIVE_INFINITY;

/** An operation from `invokedAt` to `answeredAt`. Without `output`, its outcome is unknown. */
const op = <I, O>(invokedAt: number, answeredAt: number, input: I, output: O | null): Operation<I, O> => ({
  client: `c${invokedAt}`,
  key: 'k',
  input,
  output,
  invokedAt,
  answeredAt: output === null ? never : answeredAt,
});

const verdict = <I, O, S>(model: Model<I, O, S>, operations: readonly Operation<I, O>[]) =>
  checkLinearizable(model, operations)[0]?.result;

describe('a register', () => {
  const write = (from: number, to: number, value: string) =>
    op<RegisterInput, string | boolean>(from, to, { what: 'write', value }, value);
  const lost = (from: number, value: string) =>
    op<RegisterInput, string | boolean>(from, never, { what: 'write', value }, null);
  const read = (from: number, to: number, value: string) =>
    op<RegisterInput, string | boolean>(from, to, { what: 'read' }, value);
  const swap = (from: number, to: number, [was, next]: [string, string], done: boolean) =>
    op<RegisterInput, string | boolean>(from, to, { what: 'swap', from: was, to: next }, done);

  test.each([
    ['an empty history', []],
    ['sequential calls', [write(0, 1, 'a'), read(2, 3, 'a'), write(4, 5, 'b'), read(6, 7, 'b')]],
    ['a read during a write may answer the old value', [write(0, 1, 'a'), write(2, 9, 'b'), read(3, 4, 'a')]],
    ['a read during a write may answer the new value', [write(0, 1, 'a'), write(2, 9, 'b'), read(3, 4, 'b')]],
    ['concurrent writes in either order', [write(0, 9, 'a'), write(0, 9, 'b'), read(10, 11, 'a')]],
    ['calls that touch at one moment are concurrent', [write(0, 5, 'a'), read(5, 6, '')]],
    [
      'one of two swaps succeeds',
      [swap(0, 9, ['', 'a'], true), swap(0, 9, ['', 'b'], false), read(10, 11, 'a')],
    ],
    ['an unknown write that never took effect', [write(0, 1, 'a'), lost(2, 'b'), read(20, 21, 'a')]],
    [
      'an unknown write that took effect late',
      [write(0, 1, 'a'), lost(2, 'b'), read(20, 21, 'a'), read(30, 31, 'b')],
    ],
    [
      'an unknown write that took effect before it no longer could',
      [write(0, 1, 'a'), { ...lost(2, 'b'), effectBy: 9 }, read(9, 11, 'a'), read(12, 13, 'b')],
    ],
    [
      'an unknown write between two writes',
      [lost(0, 'b'), write(1, 2, 'a'), read(3, 4, 'b'), write(5, 6, 'c'), read(7, 8, 'c')],
    ],
  ])('accepts: %s', (_, history) => {
    expect(verdict(register, history) ?? 'linearizable').toBe('linearizable');
  });

  test.each([
    ['a stale read', [write(0, 1, 'a'), write(2, 3, 'b'), read(4, 5, 'a')]],
    ['a value that nobody wrote', [write(0, 1, 'a'), read(2, 3, 'x')]],
    ['a lost update', [swap(0, 9, ['', 'a'], true), swap(0, 9, ['', 'b'], true)]],
    ['a swap that was refused for no reason', [write(0, 1, 'a'), swap(2, 3, ['a', 'b'], false)]],
    ['a value that returns', [write(0, 1, 'a'), write(2, 9, 'b'), read(3, 4, 'b'), read(5, 6, 'a')]],
    [
      'readers that see two writes in different orders',
      [write(0, 20, 'a'), write(0, 20, 'b'), read(1, 2, 'a'), read(3, 4, 'b'), read(5, 6, 'a')],
    ],
    ['an unknown write that took effect before its call', [write(0, 1, 'a'), read(2, 3, 'b'), lost(4, 'b')]],
    [
      'an unknown write that took effect after it no longer could',
      [write(0, 1, 'a'), { ...lost(2, 'b'), effectBy: 9 }, read(10, 11, 'a'), read(12, 13, 'b')],
    ],
    [
      'an unknown write that took effect twice',
      [lost(0, 'b'), read(1, 2, 'b'), write(3, 4, 'a'), read(5, 6, 'b')],
    ],
  ])('rejects: %s', (_, history) => {
    expect(verdict(register, history)).toBe('violation');
  });

  test('the checker checks each key separately, and explains a violation', () => {
    const other = { ...read(4, 5, 'a'), key: 'other' };
    const verdicts = checkLinearizable(register, [write(0, 1, 'a'), read(2, 3, 'a'), other]);
    expect(verdicts.map(({ key, result }) => [key, result])).toEqual([
      ['k', 'linearizable'],
      ['other', 'violation'],
    ]);
    expect(verdicts[0]?.explanation).toBe('');
    expect(verdicts[1]?.explanation).toBe(
      'other: state  after:\nnone of these fits next:\n  0.0 to 1.0 ms, c4: {"what":"read"} → "a"',
    );
  });

  test('the checker stops at the maximum number of steps, and refuses too many operations', () => {
    const history = Array.from({ length: 12 }, (_, i) => write(0, 100, `${i}`));
    const bounds = { operations_max: 13, steps_max: 1_000 };
    const [found] = checkLinearizable(register, [...history, read(101, 102, 'x')], bounds);
    expect(found?.result).toBe('undecided');
    expect(found?.steps).toBeLessThan(1_100);
    expect(() => checkLinearizable(register, [...history, read(1, 2, ''), read(1, 2, '')], bounds)).toThrow(
      'k has 14 operations, and 13 are allowed',
    );
  });

  /**
   * Tries every order of the operations that have an answer, together with every subset of the other operations. `time`
   * is the earliest possible time of the last operation.
   */
  function isLinearizable(
    state: string,
    left: readonly Operation<RegisterInput, string | boolean>[],
    time = Number.NEGATIVE_INFINITY,
  ): boolean {
    const due = left.filter(({ output }) => output !== null);
    if (due.length === 0) return true;
    const until = Math.min(...due.map(({ answeredAt }) => answeredAt));
    return left.some((each) => {
      if (each.invokedAt > until || (each.effectBy ?? never) < time) return false;
      const next = register.step(state, each);
      return (
        next !== null &&
        isLinearizable(
          next,
          left.filter((other) => other !== each),
          Math.max(time, each.invokedAt),
        )
      );
    });
  }

  test('the checker agrees with a search through all orders', () => {
    const value = fc.constantFrom('a', 'b');
    const input: fc.Arbitrary<[RegisterInput, string | boolean]> = fc.oneof(
      fc.tuple(fc.record({ what: fc.constant('write' as const), value }), fc.constant('')),
      fc.tuple(fc.record({ what: fc.constant('read' as const) }), fc.constantFrom('', 'a', 'b')),
      fc.tuple(fc.record({ what: fc.constant('swap' as const), from: value, to: value }), fc.boolean()),
    );
    const operation = fc
      .tuple(input, fc.nat(20), fc.integer({ min: 1, max: 8 }), fc.nat(6))
      .map(([[what, output], from, length, luck]) => {
        if (luck > 1) return op(from, from + length, what, output);
        const unknown = op<RegisterInput, string | boolean>(from, never, what, null);
        return luck === 1 ? unknown : { ...unknown, effectBy: from + length };
      });
    const seen = { linearizable: 0, violation: 0 };
    fc.assert(
      fc.property(fc.array(operation, { minLength: 1, maxLength: 7 }), (history) => {
        const expected = isLinearizable('', history) ? 'linearizable' : 'violation';
        seen[expected]++;
        expect(verdict(register, history)).toBe(expected);
      }),
      { numRuns: 2_000, seed: 7 },
    );
    expect(Math.min(seen.linearizable, seen.violation)).toBeGreaterThan(300);
  });

  test('the checker decides long histories of many clients in few steps', () => {
    const next = numbersFrom(5);
    const history: Operation<RegisterInput, string | boolean>[] = [];
    // Applies each call at a random moment of its interval, so that the history is linearizable.
    const calls = Array.from({ length: 3_000 }, (_, i) => {
      const at = i + next();
      return { at, from: at - 6 * next(), to: at + 6 * next(), unknown: next() < 0.003 };
    });
    let state = '';
    for (const { from, to, unknown } of calls) {
      const value = `v${Math.floor(next() * 5)}`;
      if (next() < 0.5) history.push(read(from, to, state));
      else {
        history.push(unknown ? lost(from, value) : write(from, to, value));
        if (!unknown || next() < 0.5) state = value;
      }
    }
    const [found] = checkLinearizable(register, history);
    expect(found).toMatchObject({ result: 'linearizable', operations: 3_000 });
    expect(found?.steps).toBeLessThan(200_000);
  });
});

describe('in the model, a chat has one pin', () => {
  const pin = (from: number, to: number, message: number) =>
    op(from, to, { what: 'pin', message } as const, 'done' as const);
  const unpin = (from: number, to: number, output: 'done' | 'not_found', message?: number) =>
    op(from, to, { what: 'unpin', ...(message ? { message } : {}) } as const, output);
  const read = (from: number, to: number, pinned: number) => op(from, to, { what: 'read' } as const, pinned);

  test('the model accepts that one of two concurrent pins replaces the other', () => {
    expect(verdict(pins, [pin(0, 9, 1), pin(0, 9, 2), read(10, 11, 1), unpin(12, 13, 'not_found', 2)])).toBe(
      'linearizable',
    );
  });

  test('the model unpins a message that is deleted, and keeps the pin of another message', () => {
    const drop = (message: number) => op<PinInput, PinOutput>(2, 3, { what: 'drop', message }, 'done');
    expect(verdict(pins, [pin(0, 1, 1), drop(1), read(4, 5, 0)])).toBe('linearizable');
    expect(verdict(pins, [pin(0, 1, 1), drop(2), read(4, 5, 1)])).toBe('linearizable');
    expect(verdict(pins, [pin(0, 1, 1), drop(1), read(4, 5, 1)])).toBe('violation');
  });

  test('the model rejects a replaced pin that returns, a double unpin, and a refused unpin of the pinned message', () => {
    expect(verdict(pins, [pin(0, 1, 1), pin(2, 3, 2), read(4, 5, 1)])).toBe('violation');
    expect(verdict(pins, [pin(0, 1, 1), unpin(2, 9, 'done'), unpin(2, 9, 'done')])).toBe('violation');
    expect(verdict(pins, [pin(0, 1, 1), unpin(2, 3, 'not_found')])).toBe('violation');
    expect(verdict(pins, [pin(0, 1, 1), unpin(2, 3, 'done', 2)])).toBe('violation');
  });
});

describe('reactions', () => {
  const shown = (own: string[], counts: Record<string, number>): ReactionOutput => ({ own, counts });
  const one = shown(['👍'], { '👍': 1 });
  const react = (
    from: number,
    to: number,
    what: 'set' | 'remove',
    person: string,
    output: ReactionOutput | null,
  ) => reactionSteps(op(from, to, { what, person, emoji: '👍' } as const, output));
  const read = (from: number, to: number, person: string, output: ReactionOutput) =>
    op(from, to, { what: 'read', person } as const, output);

  test('the model accepts reactions of two people at the same time', () => {
    const history = [
      ...react(0, 9, 'set', 'a', shown(['👍'], { '👍': 2 })),
      ...react(0.5, 9, 'set', 'person b', one),
      ...reactionSteps(op(10, 11, { what: 'clear', person: 'a' } as const, shown([], { '👍': 1 }))),
      read(12, 13, 'a', shown([], { '👍': 1 })),
    ];
    expect(verdict(reactions, history)).toBe('linearizable');
  });

  test('the model rejects a history in which a count is lost, or in which a removed reaction reappears', () => {
    const lost = [...react(0, 9, 'set', 'a', one), ...react(0.5, 9, 'set', 'b', one), read(10, 11, 'a', one)];
    expect(verdict(reactions, lost)).toBe('violation');
    const removed = react(2, 3, 'remove', 'a', shown([], {}));
    expect(verdict(reactions, [...react(0, 1, 'set', 'a', one), ...removed, read(4, 5, 'a', one)])).toBe(
      'violation',
    );
  });

  test('the model rejects a history in which a change with an unknown outcome is applied twice', () => {
    const once = [
      ...react(0, 9, 'set', 'a', null),
      read(1, 2, 'a', one),
      ...react(3, 4, 'remove', 'a', shown([], {})),
    ];
    expect(verdict(reactions, once)).toBe('linearizable');
    expect(verdict(reactions, [...once, read(5, 6, 'a', one)])).toBe('violation');
  });

  test('the model accepts an answer that shows a later change, and rejects a change that takes effect twice', () => {
    const removed = react(3, 20, 'remove', 'a', one);
    const history = [
      ...react(0, 1, 'set', 'a', one),
      ...removed,
      read(4, 5, 'a', shown([], {})),
      ...react(6, 7, 'set', 'a', one),
      read(21, 22, 'a', one),
    ];
    expect(verdict(reactions, history)).toBe('linearizable');
    expect(verdict(reactions, [...history, read(23, 24, 'a', shown([], {}))])).toBe('violation');
  });
});

describe('ownership', () => {
  const transfer = (from: number, to: number, [was, next]: [string, string], done: boolean) =>
    op(from, to, { what: 'transfer', from: was, to: next } as const, done);
  const owns = (from: number, to: number, person: string, answer: boolean) =>
    op(from, to, { what: 'owns', person } as const, answer);

  test('the model accepts one success among several transfers by one owner', () => {
    const won = [
      transfer(0, 9, ['a', 'b'], true),
      transfer(0, 9, ['a', 'c'], false),
      owns(10, 11, 'b', true),
    ];
    expect(verdict(ownership('a'), won)).toBe('linearizable');
  });

  test('the model rejects two transfers by the same owner, and access by the former owner', () => {
    const both = [transfer(0, 9, ['a', 'b'], true), transfer(0, 9, ['a', 'c'], true)];
    expect(verdict(ownership('a'), both)).toBe('violation');
    expect(verdict(ownership('a'), [transfer(0, 1, ['a', 'b'], true), owns(2, 3, 'a', true)])).toBe(
      'violation',
    );
    expect(verdict(ownership('a'), [transfer(0, 1, ['a', 'b'], true), owns(2, 3, 'b', false)])).toBe(
      'violation',
    );
  });
});

describe('tokens', () => {
  const replace = (from: number, to: number, token: string, answered = true) =>
    replacementSteps(op(from, to, null, answered ? true : null), token);
  const use = (from: number, to: number, token: string, accepted: boolean) =>
    op(from, to, { what: 'use', token } as const, accepted);
  const model = tokens('t0');

  test('while a token is being replaced, the model accepts that the old and the new token work or fail', () => {
    const history = [
      use(0, 1, 't0', true),
      ...replace(2, 20, 't1'),
      use(3, 4, 't0', false),
      use(5, 6, 't0', true),
      use(7, 8, 't1', true),
      use(9, 10, 't1', false),
      use(21, 22, 't0', false),
      use(21, 22, 't1', true),
    ];
    expect(verdict(model, history)).toBe('linearizable');
  });

  test('the model accepts overlapping replacements', () => {
    const history = [
      ...replace(0, 20, 't1'),
      ...replace(1, 5, 't2'),
      use(6, 7, 't1', false),
      use(21, 22, 't2', true),
    ];
    expect(verdict(model, history)).toBe('linearizable');
    const other = [
      ...replace(0, 20, 't1'),
      ...replace(1, 5, 't2'),
      use(21, 22, 't2', false),
      use(21, 22, 't1', true),
    ];
    expect(verdict(model, other)).toBe('linearizable');
  });

  test('the model rejects the old token after the call that replaced the token has returned', () => {
    expect(verdict(model, [...replace(0, 5, 't1'), use(6, 7, 't0', true)])).toBe('violation');
    const overlapping = [...replace(0, 5, 't1'), ...replace(1, 5, 't2'), use(6, 7, 't0', true)];
    expect(verdict(model, overlapping)).toBe('violation');
    const both = [
      ...replace(0, 5, 't1'),
      ...replace(1, 5, 't2'),
      use(6, 7, 't1', true),
      use(8, 9, 't2', true),
    ];
    expect(verdict(model, both)).toBe('violation');
  });

  test('the model rejects a history in which the valid token was refused', () => {
    expect(verdict(model, [use(0, 1, 't0', false)])).toBe('violation');
    expect(verdict(model, [...replace(0, 5, 't1'), use(6, 7, 't1', false)])).toBe('violation');
  });

  test('after a replacement with an unknown outcome, the model accepts the old token until the next replacement', () => {
    const unknown = [
      ...replace(0, never, 't1', false),
      use(6, 7, 't0', true),
      use(8, 9, 't0', false),
      use(10, 11, 't0', true),
    ];
    expect(verdict(model, unknown)).toBe('linearizable');
    expect(verdict(model, [...unknown, ...replace(12, 13, 't2'), use(14, 15, 't0', true)])).toBe('violation');
  });
});

describe('edits', () => {
  const edit = (from: number, to: number, text: string, output: 'done' | 'too_often' | null = 'done') =>
    op(from, to, { what: 'edit', text } as const, output);
  const read = (from: number, to: number, text: string) => op(from, to, { what: 'read' } as const, { text });
  const model = edits('new', 1_000);

  test('the model accepts one edit per second, and refusals between these edits', () => {
    const history = [
      edit(0, 1, 'a'),
      edit(500, 501, 'x', 'too_often'),
      read(502, 503, 'a'),
      edit(1_000, 1_002, 'b'),
      read(1_003, 1_004, 'b'),
      // Both of the overlapping edits are possible: `c` may have been stored at 2,200 ms, and `d` a second later.
      edit(1_500, 3_200, 'c'),
      edit(1_500, 3_300, 'd'),
    ];
    expect(verdict(model, history)).toBe('linearizable');
  });

  test('the model rejects two edits within a second, however the calls overlap', () => {
    expect(verdict(model, [edit(0, 1, 'a'), edit(900, 901, 'b')])).toBe('violation');
    expect(verdict(model, [edit(0, 700, 'a'), edit(0, 900, 'b')])).toBe('violation');
    expect(verdict(model, [edit(0, 1_100, 'a'), edit(0, 1_100, 'b'), edit(0, 1_900, 'c')])).toBe('violation');
  });

  test('the model rejects a history with a refused first edit, and a history with a lost edit', () => {
    expect(verdict(model, [edit(0, 1, 'a', 'too_often')])).toBe('violation');
    expect(verdict(model, [edit(0, 1, 'a'), read(2, 3, 'new')])).toBe('violation');
    expect(verdict(model, [edit(0, 1, 'a', null), read(2, 3, 'new'), read(4, 5, 'a')])).toBe('linearizable');
  });
});

test('a history omits calls that were not sent, and omits reads with an unknown outcome', async () => {
  const history = new History();
  const call = { client: 'c', key: 'k', input: 'x' };
  await history.record(call, async () => 1);
  await history.record({ ...call, reads: true }, async () => null);
  await history.record(call, async () => null);
  await history.record(call, async () => undefined);
  expect(history.operations.map(({ output, answeredAt }) => [output, Number.isFinite(answeredAt)])).toEqual([
    [1, true],
    [null, false],
  ]);
});

/** Large calls of one caller run one at a time. */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Turns } from '../../src/http/turns.js';

/** A call that is under way for some ms. */
function recorder() {
  const running = new Set<string>();
  const together = new Map<string, number>();
  const done: string[] = [];
  return {
    together,
    done,
    call: (caller: string, name: string) => async () => {
      running.add(name);
      const own = [...running].filter((each) => each.startsWith(caller)).length;
      together.set(caller, Math.max(together.get(caller) ?? 0, own));
      await sleep(2);
      running.delete(name);
      done.push(name);
    },
  };
}

test('calls of one caller run one after another, in order', async () => {
  const turns = new Turns();
  const { together, done, call } = recorder();
  const names = Array.from({ length: 5 }, (_, i) => `a${i}`);
  for (const name of names) turns.take('a', call('a', name));
  while (done.length < 5) await turn();
  expect(done).toEqual(names);
  expect(together.get('a')).toBe(1);
});

test('the first call of a caller begins at once, whatever others have waiting', async () => {
  const turns = new Turns();
  const { done, call } = recorder();
  for (let i = 0; i < 20; i++) turns.take('a', call('a', `a${i}`));
  let begun = false;
  turns.take('b', () => {
    begun = true;
    return undefined;
  });
  expect(begun).toBe(true);
  while (done.length < 20) await turn();
});

test('between two calls that end at once there is a turn of the event loop', async () => {
  const turns = new Turns();
  let count = 0;
  for (let i = 0; i < 4; i++)
    turns.take(1, () => {
      count++;
      return undefined;
    });
  expect(count).toBe(1);
  for (let before = count; count < 4; before = count) {
    await turn();
    expect(count - before).toBeLessThanOrEqual(1);
  }
});

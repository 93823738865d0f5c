import { expect, test } from 'vitest';
import { createActionRates } from '../../src/store/chats/action_rates.js';
import { storeLimits as limits } from '../../src/store/limits.js';
import { VirtualTime } from '../support/virtual_time.js';

test('a person can show a burst of chat actions, and then one chat action per interval', async () => {
  const time = new VirtualTime();
  const rates = createActionRates({ time });
  const taken = (person: number, count: number) => {
    let sum = 0;
    for (let n = 0; n < count; n++) {
      try {
        rates.take(person);
        sum++;
      } catch (error) {
        expect(error).toMatchObject({ kind: 'too_many_requests' });
      }
    }
    return sum;
  };
  expect(taken(1, 100)).toBe(limits.actions_per_person_max);
  expect(taken(2, 1)).toBe(1);
  await time.advance(2 * limits.action_per_person_ms);
  expect(taken(1, 100)).toBe(2);
});

test('a chat can show a burst of chat actions, and then one chat action per interval', async () => {
  const time = new VirtualTime();
  const rates = createActionRates({ time });
  const shown = (chat: number) =>
    Array.from({ length: 100 }, () => rates.hasRoom(chat)).filter(Boolean).length;
  expect([shown(-1), shown(-2)]).toEqual([limits.actions_per_chat_max, limits.actions_per_chat_max]);
  await time.advance(3 * limits.action_per_chat_ms);
  expect(shown(-1)).toBe(3);
});

import { expect, test } from 'vitest';
import { createSlots } from '../../src/delivery/slots.js';

const nobody = () => {};

test('a bot that starts later still gets slots, even if other bots take all the slots that they can get', () => {
  const slots = createSlots(1_000);
  const held = Array.from({ length: 10 }, () => 0);
  for (let more = true; more; ) {
    more = false;
    for (const [bot, own] of held.entries())
      if (own < 100 && slots.take(own, nobody)) {
        held[bot] = own + 1;
        more = true;
      }
  }
  let late = 0;
  while (slots.take(late, nobody)) late++;
  expect(late).toBeGreaterThan(40);
  expect(slots.taken).toBeLessThan(1_000);
});

test('one bot gets at most half of the slots, even if no other bot needs slots', () => {
  const slots = createSlots(10);
  let own = 0;
  while (slots.take(own, nobody)) own++;
  expect(own).toBe(5);
});

test('waiting bots are notified in order of arrival', () => {
  const slots = createSlots(4);
  for (let own = 0; own < 2; own++) slots.take(own, nobody);
  for (let bot = 0; bot < 2; bot++) slots.take(0, nobody);
  const woken: number[] = [];
  const wait = (bot: number) => {
    woken.push(bot);
    slots.take(0, () => wait(bot));
  };
  for (let bot = 0; bot < 3; bot++) wait(bot);
  expect(slots.taken).toBe(4);
  woken.length = 0;
  slots.give();
  expect(slots.taken).toBe(4);
  slots.give();
  expect(woken).toEqual([0, 1]);
});

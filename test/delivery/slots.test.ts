/** Slots are shared out so that no bot, nor many together, leave none for another. */
import { expect, test } from 'vitest';
import { createSlots } from '../../src/delivery/slots.js';

const nobody = () => {};

test('bots that take all they can get leave room for one that comes later', () => {
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

test('alone, a bot gets half at most', () => {
  const slots = createSlots(10);
  let own = 0;
  while (slots.take(own, nobody)) own++;
  expect(own).toBe(5);
});

test('who found none is told in turn, and what is given back is never taken twice', () => {
  const slots = createSlots(4);
  for (let own = 0; own < 2; own++) slots.take(own, nobody);
  for (let bot = 0; bot < 2; bot++) slots.take(0, nobody);
  const told: number[] = [];
  const wait = (bot: number) => {
    told.push(bot);
    slots.take(0, () => wait(bot));
  };
  for (let bot = 0; bot < 3; bot++) wait(bot);
  expect(slots.taken).toBe(4);
  told.length = 0;
  slots.give();
  expect(slots.taken).toBe(4);
  slots.give();
  expect(told).toEqual([0, 1]);
});

/** Slots are shared so that neither one bot nor many together can take them all. */
import { expect, test } from 'vitest';
import { createSlots } from '../../src/delivery/slots.js';

const nobody = () => {};

test('bots that take as many slots as they can leave room for a later bot', () => {
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

test('a bot alone gets at most half of the slots', () => {
  const slots = createSlots(10);
  let own = 0;
  while (slots.take(own, nobody)) own++;
  expect(own).toBe(5);
});

test('waiting bots are notified in order, and a freed slot is never taken twice', () => {
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

/** Gives the checker sequences of updates for which the correct verdict is known. */
import { expect, test } from 'vitest';
import { type Arrival, arrivalsOf, checkUpdates, type UpdateRules } from './updates.js';

const arrival = (id: number, chat = 'a', more: Partial<Arrival> = {}): Arrival => ({
  id,
  chat,
  message: id,
  text: `m${id}`,
  announced: false,
  ...more,
});

const check = (arrivals: readonly Arrival[], rules: Partial<UpdateRules> = {}) =>
  checkUpdates(arrivals, {
    ordered: 'bot',
    skips: 0,
    skipLeast: 10_000,
    acknowledged: [],
    attempted: new Set(arrivals.map(({ text }) => text)),
    ...rules,
  });

test('the checker accepts consecutive updates of several chats', () => {
  expect(check([])).toEqual([]);
  expect(check([arrival(7), arrival(8, 'b'), arrival(9)], { acknowledged: ['m7', 'm9'] })).toEqual([]);
});

test('the checker accepts pushed updates of different chats in any order', () => {
  const arrivals = [arrival(8, 'b'), arrival(7), arrival(9)];
  expect(check(arrivals, { ordered: 'chat' })).toEqual([]);
  expect(check(arrivals)).toEqual(['reordered: update 7 after 8']);
});

test('the checker rejects updates of one chat that are out of order', () => {
  expect(check([arrival(8), arrival(7)], { ordered: 'chat' })).toEqual([
    'reordered: update 7 after 8',
    'reordered: message 7 of a in update 7',
  ]);
});

test('the checker rejects a gap, and accepts one skip of ids for each restart', () => {
  expect(check([arrival(7), arrival(9)])).toEqual(['gap: no update between 7 and 9']);
  const skipped = [arrival(7), arrival(10_008), arrival(10_009)];
  expect(check(skipped)).toEqual(['gap: no update between 7 and 10008']);
  expect(check(skipped, { skips: 1 })).toEqual([]);
  expect(check([arrival(7), arrival(9)], { skips: 1 })).toEqual(['gap: no update between 7 and 9']);
});

test('the checker rejects lost, invented and doubled messages', () => {
  expect(check([arrival(7)], { acknowledged: ['m7', 'm8'] })).toEqual(['lost: "m8"']);
  expect(check([arrival(7)], { attempted: new Set() })).toEqual(['invented: update 7 "m7"']);
  expect(check([arrival(7), arrival(8, 'a', { text: 'm7' })])).toEqual(['doubled: "m7" again as update 8']);
});

test('the checker accepts a repeated update only if it was announced, and only with the same text', () => {
  expect(check([arrival(7), arrival(7, 'a', { announced: true }), arrival(8)])).toEqual([]);
  expect(check([arrival(7), arrival(7)])).toEqual(['repeated: update 7 after it was confirmed']);
  expect(check([arrival(7), arrival(7, 'a', { announced: true, text: 'x' })])).toEqual([
    'reused: update 7 for "m7" and "x"',
  ]);
});

test('the checker accepts an update again in a later poll until an offset confirms the update', () => {
  const updates = [arrival(7), arrival(8)];
  expect(
    check(
      arrivalsOf([
        { offset: 0, updates },
        { offset: 8, updates: updates.slice(1) },
      ]),
    ),
  ).toEqual([]);
  expect(
    check(
      arrivalsOf([
        { offset: 0, updates },
        { offset: 8, updates },
      ]),
    ),
  ).toEqual(['repeated: update 7 after it was confirmed']);
});

import { expect, test } from 'vitest';
import { createHeldBytes } from '../../src/delivery/held_bytes.js';
import { createSlots, type Slots } from '../../src/delivery/slots.js';

const nobody = () => {};

/** Takes slots for a queue until the queue has `most` slots or gets no more. Returns how many slots the queue got. */
function takeAll(slots: Slots, owner: number, most = 100): number {
  let own = 0;
  while (own < most && slots.take(owner, own, nobody)) own++;
  return own;
}

/**
 * Takes slots in turn for queues with these owners, until no queue gets another slot. Returns the slots of each queue.
 */
function compete(slots: Slots, owners: readonly number[], most = 100): number[] {
  const held = owners.map(() => 0);
  for (let more = true; more; ) {
    more = false;
    for (const [queue, own] of held.entries())
      if (own < most && slots.take(owners[queue] as number, own, nobody)) {
        held[queue] = own + 1;
        more = true;
      }
  }
  return held;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

test('an owner whose deliveries start later still gets slots, even if other owners take as many slots as they can get', () => {
  const slots = createSlots(1_000);
  compete(slots, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(takeAll(slots, 11)).toBeGreaterThan(10);
  expect(slots.taken).toBeLessThan(1_000);
});

test('an owner with eleven queues gets at most half of the slots', () => {
  const slots = createSlots(1_000);
  expect(
    sum(
      compete(
        slots,
        Array.from({ length: 11 }, () => 1),
      ),
    ),
  ).toBeLessThanOrEqual(500);
  expect(takeAll(slots, 2)).toBeGreaterThan(80);
});

test('the slots of an owner with one queue hardly depend on the number of queues of another owner', () => {
  const beside = (queues: number) =>
    compete(createSlots(1_000), [...Array.from({ length: queues }, () => 1), 2]).at(-1) as number;
  expect(beside(2)).toBe(100);
  expect(beside(11)).toBeGreaterThan(95);
});

test('every queue of a bot with routes gets a slot, even if the receivers of earlier queues never answer', () => {
  const slots = createSlots(1_000);
  const held = Array.from({ length: 12 }, () => takeAll(slots, 1));
  expect(Math.min(...held)).toBeGreaterThan(0);
  expect(sum(held)).toBeLessThanOrEqual(500);
});

test('owners take turns, and the queues of an owner are notified in order of arrival', () => {
  const slots = createSlots(8);
  for (let owner = 11; owner <= 18; owner++) expect(slots.take(owner, 0, nobody)).toBe(true);
  const woken: string[] = [];
  const queues: ReadonlyArray<[owner: number, queue: string]> = [
    [5, 'a'],
    [5, 'b'],
    [5, 'c'],
    [6, 'd'],
  ];
  for (const [owner, queue] of queues)
    slots.take(owner, 0, () => slots.take(owner, 0, nobody) && woken.push(queue));
  for (let owner = 11; owner <= 15; owner++) slots.give(owner);
  expect(woken).toEqual(['a', 'd', 'b']);
});

test('a freed slot goes to the first waiting queue of the owner that is allowed to take the slot', () => {
  const slots = createSlots(16);
  const held = Array.from({ length: 5 }, () => takeAll(slots, 1));
  expect(held).toEqual([3, 2, 1, 1, 1]);
  const woken: number[] = [];
  for (const [queue, own] of [...held, 0].entries())
    slots.take(1, own, () => slots.take(1, own, nobody) && woken.push(queue));
  // The receivers of the earlier queues never answer, so these queues free no further slot.
  slots.give(1);
  expect(woken).toEqual([5]);
});

test('fetched bytes count twice against the room of their owner, and once against the room of other owners', () => {
  const held = createHeldBytes(1_000);
  held.add(1, 300);
  expect([held.room(1), held.room(2)]).toEqual([400, 700]);
  held.add(1, -300);
  expect([held.room(1), held.room(2)]).toEqual([1_000, 1_000]);
});

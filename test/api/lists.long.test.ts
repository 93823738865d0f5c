/** Tests the pages and the largest answer of every list, with as many items as a list can have. */
import { afterAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { type Answer, resultOf, type Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { makeWorld, message, type Row, rows } from './lists.cases.js';

let service: Service;
let world: Awaited<ReturnType<typeof makeWorld>>;

onSharedService(async (running) => {
  service = running;
  world = await makeWorld(service);
}, 180_000);
afterAll(async () => {
  await world?.end();
});

const bytesOf = ({ body }: Answer) => Buffer.byteLength(JSON.stringify(body));

const pages = Object.entries(rows).flatMap(([name, row]) => ('page' in row ? [[name, row] as const] : []));
test.each(pages)(
  '%s shows every item once, on pages of at most 100 items and 64 KiB',
  async (_, row) => {
    const { path, by = world.owner, keys } = await row.page(world);
    const seen: unknown[] = [];
    let pageCount = 0;
    for (let cursor: string | undefined = ''; cursor !== undefined; pageCount++) {
      const at: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const answer = await service.app(by, 'GET', `${path}${path.includes('?') ? '&' : '?'}limit=100${at}`);
      const { items, next_cursor } = await resultOf(answer);
      expect(items.length).toBeLessThanOrEqual(limits.page_size_max);
      // If an item is larger than 64 KiB, it is alone on its page.
      expect(bytesOf(answer)).toBeLessThanOrEqual(items.length > 1 ? 64 * 1024 : message.bytes);
      expect(next_cursor === undefined || items.length > 0).toBe(true);
      seen.push(...items.map(row.keyOf).filter((key: unknown) => key !== null));
      cursor = next_cursor;
    }
    const inOrder = (all: readonly unknown[]) => all.map(String).sort();
    expect(inOrder(seen)).toEqual(inOrder(keys));
    if (keys.length > limits.page_size_max) expect(pageCount).toBeGreaterThan(1);
  },
  120_000,
);

type Measured = Extract<Row, { readonly bytes: number }>;
const answers = Object.entries(rows).flatMap(([name, row]) =>
  'bytes' in row && row.answer ? [[name, row.bytes / 1024, row as Measured] as const] : [],
);
test.each(answers)(
  'the largest answer of %s has at most %d KiB',
  async (_, __, row) => {
    const answer = await (row.answer as NonNullable<Measured['answer']>)(world);
    const result = answer.body.result ?? answer.body;
    expect([answer.status, answer.body.description]).toEqual([200, undefined]);
    if (row.listOf) {
      expect(row.listOf(result).length).toBeLessThanOrEqual(row.items ?? 0);
      if (!row.cut) expect(row.listOf(result).length).toBe(row.items);
    }
    expect(bytesOf(answer)).toBeLessThanOrEqual(row.bytes);
    // The declared limit must not be far higher than the real size. Otherwise the limit would be useless.
    expect(bytesOf(answer)).toBeGreaterThan(row.bytes / 40);
  },
  120_000,
);

/**
 * Measures searches of messages over HTTP, one at a time and four at a time. The messages are only in Postgres, and the
 * cache of the operating system holds them.
 */
import { inParallel, textOf } from '../../src/loadtest/client.js';
import { makeHistogram, note, percentilesOf } from '../../src/loadtest/latency_percentiles.js';
import type { Finding } from '../../src/loadtest/results.js';
import { known } from '../measure.js';
import { fillSearch, joinSearched, type SearchedChats, wordOf } from '../service/fill_search.js';
import { makePeople, type Person } from '../service/population.js';
import { cpuSeconds, cpuSecondsOfTree } from '../service/processes.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

export type SearchService = Pick<Service, 'front' | 'parts'>;

const p99_goal_ms = 100;
const chats_filled = 20_000;
const searches = 300;
const warm_up = 30;
const widths = [1, 4] as const;
/** The number of messages per page, as in the application. */
const page_size = 20;
/** After this many pages, a search of all chats starts again at the first page. */
const pages_in_row = 20;

/**
 * Groups of people. Each person in a group belongs to `chats` chats. There are many people, so that each person makes
 * only a few calls.
 */
const groups = [
  { chats: 5, people: 40 },
  { chats: 500, people: 40 },
  { chats: 5_000, people: 24 },
] as const;

export interface Searchers {
  readonly chats: number;
  readonly people: readonly Person[];
}

interface Page {
  readonly result: { readonly items: readonly unknown[]; readonly next_cursor?: string };
}

export interface Kind {
  readonly name: string;
  readonly searchers: Searchers;
  readonly query: (i: number) => string;
  /** The chat to search in and the cursor. Undefined to search all chats. */
  readonly place?: (i: number) => { readonly chat: number; readonly cursor?: number };
  /** Whether a search of all chats continues at the end of the same person's previous page. */
  readonly isContinued?: boolean;
}

/** Returns a common word. */
const latin = (i: number) => wordOf(0, 20 + (i % 5));
const cyrillic = (i: number) => wordOf(1, 20 + (i % 5));
const rare = (i: number) => `#${1_000 + (i % 500)}`;
const unknownLatin = (i: number) => `xqw${i % 10}zebra`;
const unknownCyrillic = (i: number) => `щф${i % 10}журавль`;

function kindsOf({ ids, sizes }: SearchedChats, all: readonly Searchers[]): Kind[] {
  const few = all[0] as Searchers;
  const newest = (i: number) => ({ chat: ids[i % 2] as number });
  const deep = (i: number) => {
    const at = i % 2;
    return { chat: ids[at] as number, cursor: 1 + ((i * 7_919) % (sizes[at] as number)) };
  };
  const one = (name: string, query: Kind['query'], place: Kind['place']): Kind => ({
    ...{ name: `one chat, ${name}`, searchers: few, query },
    ...(place === undefined ? {} : { place }),
  });
  const mixed = (i: number) => (i % 2 === 0 ? latin(i) : cyrillic(i));
  const none = (i: number) => (i % 2 === 0 ? unknownLatin(i) : unknownCyrillic(i));
  return [
    one('a common word', mixed, newest),
    one('a common word, a deep page', mixed, deep),
    one('two words', (i) => `${mixed(i)} ${i % 2 === 0 ? wordOf(0, 300) : wordOf(1, 300)}`, deep),
    one('a part of a word', (i) => mixed(i).slice(1, 4), deep),
    one('a rare word', rare, deep),
    one('no match, Latin', unknownLatin, deep),
    one('no match, Cyrillic', unknownCyrillic, deep),
    one('eight words, no match', (i) => Array.from({ length: 8 }, (_, n) => none(n + i)).join(' '), deep),
    ...all.flatMap((searchers): Kind[] => [
      { name: `${searchers.chats} chats, a common word`, searchers, query: mixed },
      { name: `${searchers.chats} chats, no match`, searchers, query: none },
      { name: `${searchers.chats} chats, no match, next pages`, searchers, query: none, isContinued: true },
    ]),
  ];
}

export interface Measured {
  readonly kind: string;
  readonly width: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** The CPU time of Postgres per search, in ms. */
  readonly postgres: number;
  readonly front: number;
  readonly items: number;
  readonly empty: number;
}

export async function measureKind(
  { front, parts }: SearchService,
  { name, searchers, query, place, isContinued }: Kind,
  width: number,
  count = searches,
): Promise<Measured> {
  const histogram = makeHistogram();
  const cursors = new Map<number, { readonly cursor: string | undefined; readonly pages: number }>();
  let items = 0;
  let empty = 0;
  const search = async (i: number) => {
    const at = i % searchers.people.length;
    const where = place?.(i);
    const before = isContinued ? cursors.get(at) : undefined;
    const cursor = where === undefined ? before?.cursor : where.cursor;
    const path = where === undefined ? '/api/search/messages' : `/api/chats/${where.chat}/search`;
    const params = new URLSearchParams({ query: query(isContinued ? at : i), limit: String(page_size) });
    if (cursor !== undefined) params.set('cursor', String(cursor));
    const began = performance.now();
    const text = await textOf(`${front.baseUrl}${path}?${params}`, {
      token: searchers.people[at]?.token ?? '',
    });
    const ms = performance.now() - began;
    const { result } = JSON.parse(text) as Page;
    const pages = (before?.pages ?? 0) + 1;
    cursors.set(at, {
      cursor: pages < pages_in_row ? result.next_cursor : undefined,
      pages: pages % pages_in_row,
    });
    if (isContinued && cursor === undefined) return;
    note(histogram, ms);
    items += result.items.length;
    empty += Number(result.items.length === 0);
  };
  await inParallel(warm_up, width, search);
  if (isContinued) await inParallel(searchers.people.length, width, search);
  histogram.reset();
  items = empty = 0;
  const before = [cpuSecondsOfTree(parts.postgres), cpuSeconds(front.pid)] as const;
  await inParallel(count, width, search);
  const after = [cpuSecondsOfTree(parts.postgres), cpuSeconds(front.pid)] as const;
  const { p50, p99, max } = percentilesOf(histogram);
  return {
    ...{ kind: name, width, p50, p99, max, items: items / histogram.count, empty: empty / histogram.count },
    postgres: ((after[0] - before[0]) * 1_000) / count,
    front: ((after[1] - before[1]) * 1_000) / count,
  };
}

export { kindsOf };

/** Makes people members of chats of all sizes. Each person belongs to the two largest chats. */
async function makeSearchers(service: Service, { ids }: SearchedChats): Promise<Searchers[]> {
  const made: Searchers[] = [];
  for (const group of groups) {
    const chats = Math.min(group.chats, ids.length);
    const others = Array.from(
      { length: chats - 2 },
      (_, i) => ids[2 + Math.floor((i * (ids.length - 2)) / chats)],
    );
    const people = await makePeople(service, `search_${group.chats}`, group.people);
    await joinSearched(service.databaseUrl, people, [...ids.slice(0, 2), ...(others as number[])]);
    made.push({ chats: group.chats, people });
  }
  return made;
}

export const search: Measurement = {
  name: 'search',
  async run(service, _, { searched, progress }): Promise<Finding[]> {
    const [owner] = (await makePeople(service, 'search_owner', 1)) as [Person];
    const chats = await fillSearch(service.databaseUrl, owner, searched, chats_filled, progress);
    const kinds = kindsOf(chats, await makeSearchers(service, chats));
    const findings: Finding[] = [];
    service.unpin();
    try {
      for (const kind of kinds)
        for (const width of widths) {
          progress(`search: ${kind.name}, ${width} at a time`);
          const { p50, p99, max, postgres, front } = await measureKind(service, kind, width);
          findings.push({
            key: `p99 of ${kind.name}, ${width} at a time`,
            proof: '',
            what: `a search of ${searched.toLocaleString('en')} messages: ${kind.name}, ${width} at a time`,
            measured: `p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)}, max ${max.toFixed(0)} ms; CPU of Postgres ${postgres.toFixed(1)} ms, of the front ${front.toFixed(1)} ms`,
            value: known(p99),
            goal: `p99 ≤ ${p99_goal_ms} ms`,
            met: p99 <= p99_goal_ms,
          });
        }
    } finally {
      service.repin();
    }
    return findings;
  },
};

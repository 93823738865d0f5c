/**
 * Measures `sendMessageDraft` (decision 0061). Many bots change the texts of many drafts, and event streams show some
 * of these drafts. Additional drafts, called probes, measure the time from a call to its event. The text of a probe
 * contains a sequence number and the time when the call was due.
 */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inParallel, makePair, type Pair, WrongAnswer } from '../../src/loadtest/client.js';
import type { Wire } from '../../src/loadtest/fixed_rate.js';
import type { Finding } from '../../src/loadtest/results.js';
import type { Series } from '../../src/loadtest/series.js';
import { type LoadOptions, load, loadFixed } from '../load/load.js';
import { plainWire } from '../load/plain_wire.js';
import { costsBetween, known, median, percentile, readCosts } from '../measure.js';
import { makePeople, openChats, openManyChats, type Person, text } from '../service/population.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

const bots = 50;
/** How many drafts each bot changes at the same time. */
const drafts_per_bot = 200;
const drafts = bots * drafts_per_bot;
/** How many of all drafts are watched. The bench process itself reads their event streams. */
const watched = 1_000;
const probes = 100;
/** How often each probe changes per second. An event stream shows up to 20 changes per second. */
const probe_changes_per_s = 4;
const warmup_s = 2;
/** How long to wait for the events of the last changes, in ms. */
const late_ms_max = 5_000;

const rate_goal = 20_000;
const redis_goal_us = 15;
const p99_goal_ms = 50;
const half = 0.5;

const now = () => performance.timeOrigin + performance.now();

interface Probe {
  readonly bot: string;
  readonly person: number;
  sent: number;
  shown: number;
}

interface Stage {
  readonly service: Service;
  readonly watch: RedisWatch;
  readonly series: Series;
  readonly load: LoadOptions;
  readonly probes: readonly Probe[];
  /** For each event of a probe, the time in ms from when the change was due until the event arrived. */
  readonly latencies: number[];
}

/** Opens the event stream of a person, and passes the text of each draft to `onDraft`. */
async function watchDrafts({ front }: Service, token: string, onDraft: (text: string) => void) {
  const headers = { authorization: `Bearer ${token}` };
  const request = get(`${front.baseUrl}/api/stream`, { headers, agent: false });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  expect(answer.statusCode === 200, `a stream answered ${answer.statusCode}`);
  let rest = '';
  answer.setEncoding('utf8').on('data', (part: string) => {
    const blocks = (rest + part).split('\n\n');
    rest = blocks.pop() as string;
    for (const block of blocks) {
      const data = /^event: message_draft\ndata: (.*)$/m.exec(block)?.[1];
      if (data !== undefined) onDraft((JSON.parse(data) as { text: string }).text);
    }
  });
  // Ignores errors, because the measurement ends by closing the stream, which then emits an error.
  answer.on('error', () => undefined);
  return () => answer.destroy();
}

const rowsOf = ({ bot }: Pair, people: readonly number[]) =>
  people.map((person) => [bot.token, String(person)]);

/** Changes each probe when its change is due, until `ended`. Throws WrongAnswer if a call fails. */
async function changeProbes(wire: Wire, { probes: all }: Stage, ended: AbortSignal): Promise<void> {
  let fault: WrongAnswer | undefined;
  const began = now();
  const gap = 1_000 / (probe_changes_per_s * all.length);
  for (let next = 0; !ended.aborted && !fault; ) {
    for (let due = began + next * gap; due <= now() && wire.free() > 0; due = began + ++next * gap) {
      const probe = all[next % all.length] as Probe;
      const body = { chat_id: probe.person, draft_id: 1, text: `${++probe.sent} ${due.toFixed(3)}` };
      const path = `/bot${probe.bot}/sendMessageDraft`;
      const headers = { 'content-type': 'application/json' };
      wire.send({ method: 'POST', path, headers, body: JSON.stringify(body) }, (status, why) => {
        if (status !== 200) fault = new WrongAnswer(`a draft failed with ${status} ${why}`);
      });
    }
    await sleep(1);
  }
  if (fault) throw fault;
}

async function lastTextsShown({ probes: all, service }: Stage): Promise<void> {
  const end = now() + late_ms_max;
  const missing = () => all.filter(({ sent, shown }) => sent !== shown).length;
  while (missing() > 0 && now() < end) await sleep(20, undefined, { signal: service.signal });
  expect(missing() === 0, `the last text of ${missing()} drafts was not shown`);
}

/**
 * Creates people with drafts and opens the event streams of some of these people. Returns the rows for the load. Each
 * row has the token of a bot and the id of a person.
 */
async function open(service: Service, closing: Array<() => void>) {
  const pairs = await inParallel(bots, 4, (i) =>
    makePair(service.front.baseUrl, service.adminToken, `drafts_${i}`),
  );
  const rows: string[][] = [];
  for (const pair of pairs) {
    const seen = await makePeople(service, `drafts_${pair.bot.id}`, watched / bots);
    await openChats(service, pair, seen);
    for (const { token } of seen) closing.push(await watchDrafts(service, token, () => undefined));
    const unseen = await openManyChats(service, pair, drafts_per_bot - seen.length);
    rows.push(...rowsOf(pair, [...seen.map(({ id }) => id), ...unseen]));
  }
  const people = await makePeople(service, 'drafts_probe', probes);
  const latencies: number[] = [];
  const all = await inParallel(probes, 4, async (i): Promise<Probe> => {
    const [pair, person] = [pairs[i % bots] as Pair, people[i] as Person];
    await openChats(service, pair, [person]);
    const probe: Probe = { bot: pair.bot.token, person: person.id, sent: 0, shown: 0 };
    const onDraft = (words: string) => {
      const [number, due] = words.split(' ').map(Number) as [number, number];
      probe.shown = number;
      latencies.push(now() - due);
    };
    closing.push(await watchDrafts(service, person.token, onDraft));
    return probe;
  });
  return { rows, probes: all, latencies };
}

async function fullRate({ service, watch, series, load: own }: Stage) {
  const before = await readCosts(service, watch, [service.front.pid]);
  const { requests, seconds } = await load(series, own);
  const after = await readCosts(service, watch, [service.front.pid]);
  return { rate: requests / seconds, cpu: costsBetween(before, after, requests) };
}

async function atRate(stage: Stage, rate: number): Promise<{ p50: number; p99: number; count: number }> {
  const { service, series, latencies } = stage;
  const wire = await plainWire(service.front.baseUrl, probes);
  const ended = new AbortController();
  const probing = changeProbes(wire, stage, ended.signal);
  try {
    await loadFixed(series, { ...stage.load, rate, warmup_s });
  } finally {
    ended.abort();
  }
  await probing;
  await lastTextsShown(stage);
  await wire.close();
  const took = latencies.splice(0).slice(warmup_s * probes * probe_changes_per_s);
  return { p50: percentile(took, 0.5), p99: percentile(took, 0.99), count: took.length };
}

const fixed = (values: readonly number[], digits: number) =>
  values.map((value) => value.toFixed(digits)).join(', ');

export const messageDrafts: Measurement = {
  name: 'drafts',
  async run(service, watch, { rounds, seconds, connections, load: tool, progress }): Promise<Finding[]> {
    const closing: Array<() => void> = [];
    try {
      progress(`drafts: opening ${drafts.toLocaleString('en')} chats`);
      const { rows, ...opened } = await open(service, closing);
      const body = `{"chat_id":{2},"draft_id":1,"text":"${text} {pass}"}`;
      const calls = [{ verb: 'POST', path: '/bot{1}/sendMessageDraft', body }] as const;
      const series: Series = { origin: service.front.baseUrl, calls, rows };
      const { dir, signal } = service;
      const own: LoadOptions = { tool, connections, seconds, dir, signal };
      const stage: Stage = { service, watch, series, load: own, ...opened };
      // The first load is not measured, because it reads all chats from Postgres.
      await load(series, { ...own, seconds: 3 * warmup_s });
      const fast: Array<Awaited<ReturnType<typeof fullRate>>> = [];
      for (let round = 1; round <= rounds; round++) {
        progress(`drafts: round ${round} of ${rounds}`);
        fast.push(await fullRate(stage));
      }
      service.profile(service.front.pid);
      await load(series, own);
      service.profile(service.front.pid);
      const rate = median(fast.map((each) => each.rate));
      const slower = Math.round(half * Math.min(rate, rate_goal));
      service.unpin();
      const slow: Array<Awaited<ReturnType<typeof atRate>>> = [];
      for (let round = 1; round <= rounds; round++) {
        progress(`drafts: ${slower} per second, round ${round} of ${rounds}`);
        slow.push(await atRate(stage, slower));
      }
      const of = (name: 'server' | 'redis') => median(fast.map(({ cpu }) => cpu[name]));
      const p99 = median(slow.map((each) => each.p99));
      const many = `${drafts.toLocaleString('en')} drafts, ${watched.toLocaleString('en')} of them watched`;
      return [
        {
          key: 'draft changes per second',
          proof: '',
          what: `sendMessageDraft, ${many}, ${connections} connections: rate`,
          measured: `${fixed(
            fast.map((each) => each.rate),
            0,
          )}/s; front ${of('server').toFixed(1)} µs CPU per call`,
          value: known(rate),
          goal: `≥ ${rate_goal.toLocaleString('en')}/s`,
          met: Number.isNaN(rate) ? null : rate >= rate_goal,
        },
        {
          key: 'Redis per draft change',
          proof: '',
          what: 'CPU time of Redis per draft change at this rate',
          measured: `${fixed(
            fast.map(({ cpu }) => cpu.redis),
            1,
          )} µs`,
          value: known(of('redis')),
          goal: `≤ ${redis_goal_us} µs`,
          met: Number.isNaN(of('redis')) ? null : of('redis') <= redis_goal_us,
        },
        {
          key: 'ms from draft to event',
          proof: '',
          what: `draft due → event of the watcher, at ${slower.toLocaleString('en')} changes/s`,
          measured: `p50 ${fixed(
            slow.map((each) => each.p50),
            1,
          )}, p99 ${fixed(
            slow.map((each) => each.p99),
            1,
          )} ms of ${slow.map(({ count }) => count).join(', ')} changes; every last text was shown`,
          value: known(p99),
          goal: `p99 ≤ ${p99_goal_ms} ms`,
          met: Number.isNaN(p99) ? null : p99 <= p99_goal_ms,
        },
      ];
    } finally {
      for (const close of closing) close();
      service.repin();
    }
  },
};

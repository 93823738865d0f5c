/**
 * For goal P3: measures webhook deliveries per second, compared with one BullMQ job per delivery and with undici alone.
 * The three senders alternate. Each sends the same requests over the same number of connections, from one process on
 * the same core to the same receiver. The receiver answers only after all connections are open. Otherwise the service
 * would open fewer connections than the others. Updates are created in advance. The measured part of a round begins
 * when half of the requests have arrived, and ends shortly before the last request.
 */

import { once } from 'node:events';
import { inParallel } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import type { WebhookFloorTask } from '../floors/webhook_floor.js';
import { known, median } from '../measure.js';
import { untilFlushed } from '../service/fill_reactions.js';
import { cpuSeconds, serverCore } from '../service/processes.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Program, Service } from '../service/service.js';
import type { Measurement } from './measurement.js';
import { bots, makeWebhookBots, type WebhookBots } from './webhook_bots.js';
import type { Books } from './webhook_receiver.js';

type Side = 'service' | WebhookFloorTask['kind'];

interface Turn {
  readonly rate: number;
  /** The CPU time of the sending process per delivery, in µs. */
  readonly cpu: number;
  readonly redis: number;
  readonly connections: number;
}

/**
 * How many connections are measured: a small number, as in a normal installation, and the largest number that the bots
 * allow.
 */
const connection_counts = [2 * bots, 40 * bots];

const named: Record<Side, string> = { service: 'the service', jobs: 'one job each', bare: 'undici alone' };

/** How many people write in parallel while a round is prepared. */
const width = 32;

interface Round {
  readonly service: Service;
  readonly watch: RedisWatch;
  readonly hooks: WebhookBots;
  readonly count: number;
  readonly connections: number;
}

async function timed(
  { watch, hooks, count, connections }: Round,
  pid: number,
  begin: () => Promise<void> | void,
): Promise<() => Promise<{ readonly turn: Turn; readonly books: Books }>> {
  const [from, until] = [Math.max(connections, Math.floor(count / 2)), Math.floor(count * 0.95)];
  hooks.expect({ count, from, until, connections });
  const spent = async () => ({ own: cpuSeconds(pid), redis: (await watch.cost()).cpuSeconds });
  const began = hooks.reached('from').then(spent);
  const ended = hooks.reached('until').then(spent);
  await begin();
  const [before, after] = await Promise.all([began, ended, hooks.reached('done')]);
  return async () => {
    const books = await hooks.books(count, true);
    const each = (seconds: number) => (seconds * 1e6) / (until - from);
    const turn = {
      rate: books.rate,
      cpu: each(after.own - before.own),
      redis: each(after.redis - before.redis),
      connections: books.connections,
    };
    return { turn, books };
  };
}

async function serviceTurn(round: Round, worker: number) {
  const { service, watch, hooks, count, connections } = round;
  await inParallel(count, width, (number) => hooks.say(number, Date.now()));
  await untilFlushed(watch, service.signal);
  service.profile(worker);
  const close = await timed(round, worker, () => hooks.set(true, false, connections / bots));
  service.profile(worker);
  const found = await close();
  await hooks.set(false);
  return found;
}

function makeFloors(service: Service, hooks: WebhookBots) {
  const { origin, certificate, secretToken } = hooks;
  const running = new Map<string, Program>();

  async function prepare(task: WebhookFloorTask): Promise<Program> {
    const known = running.get(task.kind);
    if (known) {
      const ready = once(known.child, 'message', { signal: service.signal });
      known.child.send(task);
      await ready;
      return known;
    }
    const made = await service.startProgram('floors/webhook_floor', task, serverCore);
    running.set(task.kind, made);
    return made;
  }

  return {
    async turn(
      round: Round,
      kind: WebhookFloorTask['kind'],
      requests: Books['requests'] = [],
    ): Promise<Turn> {
      const connections = round.connections / bots;
      const floor = await prepare({
        ...{ kind, redisUrl: service.redisUrl, origin, certificate, secretToken, connections, requests },
      });
      const close = await timed(round, floor.pid, () => void floor.child.send('go'));
      return (await close()).turn;
    },
    async stop(): Promise<void> {
      for (const floor of running.values()) await floor.stop();
    },
  };
}

const goals = {
  jobs: { rate: 2.2, cpu: 2.5 },
  bare: { rate: 0.65, cpu: 0.65 },
};

function findingOf(
  turns: Record<Side, readonly Turn[]>,
  floor: WebhookFloorTask['kind'],
  connections: number,
): Finding {
  const goal = goals[floor];
  // Of the senders that Petrel is compared with, only BullMQ uses Redis. Comparisons with other senders leave out the
  // CPU time of Redis.
  const costOf = ({ cpu, redis }: Turn) => (floor === 'jobs' ? cpu + redis : cpu);
  const pairs = turns.service.map((own, i) => [own, turns[floor][i] as Turn] as const);
  const byRate = median(pairs.map(([own, other]) => own.rate / other.rate));
  const byCpu = median(pairs.map(([own, other]) => costOf(other) / costOf(own)));
  const shown = (side: Side) => {
    const of = (field: keyof Turn) => Math.round(median(turns[side].map((turn) => turn[field])));
    return `${named[side]} ${of('rate').toLocaleString('en')}/s (${of('cpu')} µs CPU, Redis ${of('redis')} µs, ${of('connections')} connections)`;
  };
  return {
    key: `webhooks beside ${floor}, ${connections} connections`,
    value: byRate,
    proof: 'P3',
    what: `webhook deliveries of ${bots} bots over ${connections} connections, compared with ${named[floor]}`,
    measured: `${byRate.toFixed(2)} × by rate, ${byCpu.toFixed(2)} × by CPU time: ${shown('service')}, ${shown(floor)}`,
    goal: goal.rate === goal.cpu ? `${goal.rate} ×` : `${goal.rate} × by rate, ${goal.cpu} × by CPU time`,
    // The rate and the CPU time must both meet their goals, because the rate alone can mislead: a slow receiver makes
    // the rates equal, and a busy machine makes the rates differ.
    met: byRate >= goal.rate && (Number.isNaN(byCpu) || byCpu >= goal.cpu),
  };
}

/** Returns the cost of a delivery. The cost depends on the number of connections, so the key contains this number. */
function costOf(turns: readonly Turn[], which: 'cpu' | 'redis', whose: string, connections: number): Finding {
  const us = median(turns.map((turn) => turn[which]));
  return {
    key: `us of ${whose} a delivery, ${connections} connections`,
    proof: '',
    what: `CPU time of ${whose} per webhook delivery over ${connections} connections`,
    measured: `${us.toFixed(1)} µs`,
    value: known(us),
    goal: '',
    met: null,
  };
}

export const webhooks: Measurement = {
  name: 'webhooks',
  async run(service, watch, { deliveries: count, rounds }) {
    const hooks = await makeWebhookBots(service, 'hook');
    const worker = await service.startWorker();
    const floors = makeFloors(service, hooks);

    async function measure(connections: number): Promise<Record<Side, Turn[]>> {
      const round: Round = { service, watch, hooks, count, connections };
      const turns: Record<Side, Turn[]> = { service: [], jobs: [], bare: [] };
      // Round 0 warms up all three senders.
      for (let i = 0; i <= rounds; i++) {
        const { turn, books } = await serviceTurn(round, worker.pid);
        const order = i % 2 === 0 ? (['jobs', 'bare'] as const) : (['bare', 'jobs'] as const);
        if (i > 0) turns.service.push(turn);
        for (const kind of order) {
          const other = await floors.turn(round, kind, books.requests);
          if (i > 0) turns[kind].push(other);
        }
      }
      return turns;
    }

    try {
      // Drops the updates that were created when the chats were opened, so that they are not counted.
      await hooks.set(true, true);
      await hooks.set(false, true);
      const findings: Finding[] = [];
      for (const connections of connection_counts) {
        const turns = await measure(connections);
        findings.push(findingOf(turns, 'jobs', connections), findingOf(turns, 'bare', connections));
        // The capacity model uses the cost measured with 40 connections.
        findings.push(
          costOf(turns.service, 'cpu', 'the worker', connections),
          costOf(turns.service, 'redis', 'Redis', connections),
        );
      }
      return findings;
    } finally {
      await floors.stop();
      await worker.stop();
      await hooks.close();
    }
  },
};

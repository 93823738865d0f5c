/**
 * Measures `sendMessage` over one, two and three fronts of one machine, where all processes share the cores. Compares
 * the rates with the predictions of the capacity model, which uses the costs measured at one front. On two cores, the
 * results can show that more fronts reach a higher rate and that the model is correct, but not how far fronts scale.
 */
import { availableParallelism } from 'node:os';
import { highestRate } from '../../src/loadtest/capacity_model.js';
import { expect, makePair } from '../../src/loadtest/client.js';
import type { Finding, ScalingResult } from '../../src/loadtest/results.js';
import { once } from '../../src/loadtest/series.js';
import { type LoadOptions, load } from '../load/load.js';
import { costsBetween, drain, known, median, readCosts } from '../measure.js';
import { ask } from '../scenarios/scenario.js';
import { type Message, text } from '../service/population.js';
import { cpuSecondsOfMachine } from '../service/processes.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service, Target } from '../service/service.js';

const warmup_s = 1;
const off_max = 0.2;
/**
 * The minimum number of connections per front. With fewer connections, all of them would sometimes wait for one disk
 * write of Redis. The cores would then be idle, but the model assumes busy cores.
 */
const connections_min = 256;
const names = ['server', 'redis', 'flush', 'postgres', 'load'] as const;

export interface ScalingOptions extends LoadOptions {
  readonly rounds: number;
  readonly fronts: number;
  readonly watch: RedisWatch;
  readonly progress: (line: string) => void;
}

interface Turn {
  readonly rate: number;
  readonly cpu: ReturnType<typeof costsBetween>;
  readonly p99_ms: number;
  /** The CPU time that other programs left free, in cores. For example, 1.5 means one and a half cores. */
  readonly cores: number;
  readonly idle: number;
}

async function turn(
  service: Service,
  fronts: readonly Target[],
  path: string,
  body: string,
  options: ScalingOptions,
): Promise<Turn> {
  const { watch } = options;
  const connections = Math.max(options.connections, connections_min);
  for (const front of fronts) {
    const { result } = await ask<{ result: Message }>(front, path, { body });
    expect(result.text === text, 'sendMessage returned another text');
  }
  await drain(options);
  const pids = fronts.map(({ pid }) => pid);
  const reading = async () => ({
    ...(await readCosts(service, watch, pids)),
    versions: await watch.versions(),
    machine: cpuSecondsOfMachine(),
    at: performance.now(),
  });
  const before = await reading();
  const own = { ...options, connections };
  const series = fronts.map(({ baseUrl }) => ({
    origin: baseUrl,
    calls: [{ verb: 'POST' as const, path, body }],
    rows: once,
  }));
  const results = await Promise.all(series.map((each) => load(each, own)));
  const after = await reading();
  const requests = results.reduce((sum, result) => sum + result.requests, 0);
  const applied = after.versions - before.versions;
  expect(
    applied >= requests && applied <= requests + connections * fronts.length,
    `${requests} calls were acknowledged and ${applied} applied`,
  );
  const cpu = costsBetween(before, after, requests);
  const ours = (names.reduce((sum, name) => sum + cpu[name], 0) * requests) / 1e6;
  const others = Math.max(0, after.machine - before.machine - ours);
  const seconds = (after.at - before.at) / 1_000;
  return {
    rate: results.reduce((sum, result) => sum + result.requests / result.seconds, 0),
    cpu,
    p99_ms: Math.max(...results.map(({ p99 }) => p99)),
    cores: availableParallelism() - others / seconds,
    idle: Math.max(0, availableParallelism() - (after.machine - before.machine) / seconds),
  };
}

export async function scaling(
  service: Service,
  options: ScalingOptions,
): Promise<{ readonly results: ScalingResult[]; readonly findings: Finding[] }> {
  const pair = await makePair(service.front.baseUrl, service.adminToken, 'scaling');
  const path = `/bot${pair.bot.token}/sendMessage`;
  const body = JSON.stringify({ chat_id: pair.user.id, text });
  const more: Array<Awaited<ReturnType<Service['startFront']>>> = [];
  try {
    while (more.length < options.fronts - 1) more.push(await service.startFront());
    const all: Target[] = [service.front, ...more];
    service.unpin(more);
    const turns = all.map((): Turn[] => []);
    for (let i = 0; i <= options.rounds; i++) {
      for (let count = 1; count <= all.length; count++) {
        options.progress(
          `scaling: ${i === 0 ? 'warm-up' : `round ${i} of ${options.rounds}`}, ${count} fronts`,
        );
        const seconds = i === 0 ? warmup_s : options.seconds;
        const done = await turn(service, all.slice(0, count), path, body, {
          ...options,
          seconds,
          anyCore: true,
        });
        if (i > 0) turns[count - 1]?.push(done);
      }
    }
    return judge(turns);
  } finally {
    for (const front of more) await front.stop();
    service.repin();
  }
}

function judge(turns: readonly (readonly Turn[])[]) {
  const costs = turns.map((each) =>
    Object.fromEntries(names.map((name) => [name, median(each.map(({ cpu }) => cpu[name]))])),
  ) as Array<Turn['cpu']>;
  const results = turns.map(
    (each, i): ScalingResult => ({
      fronts: i + 1,
      rate: median(each.map(({ rate }) => rate)),
      predicted: known(highestRate(costs[0] as Turn['cpu'], i + 1, median(each.map(({ cores }) => cores)))),
      cpu: costs[i] as Turn['cpu'],
      p99_ms: median(each.map(({ p99_ms }) => p99_ms)),
      cores: median(each.map(({ cores }) => cores)),
    }),
  );
  const findings = results.map(({ fronts, rate, predicted, cores }, i): Finding => {
    const idle = median(turns[i]?.map((each) => each.idle) ?? []);
    const off = predicted === null ? Number.NaN : Math.abs(predicted / rate - 1);
    return {
      key: `model at ${fronts} fronts`,
      proof: '',
      what: `highest rate over ${fronts} ${fronts === 1 ? 'front' : 'fronts'} on ${availableParallelism()} cores, compared with the capacity model`,
      measured: `${Math.round(rate).toLocaleString('en')}/s, predicted ${Math.round(predicted ?? 0).toLocaleString('en')}/s, off by ${(off * 100).toFixed(0)} %; others left ${cores.toFixed(1)} cores, of which ${idle.toFixed(2)} were idle`,
      value: known(off),
      goal: `within ${off_max * 100} %`,
      met: off <= off_max,
    };
  });
  return { results, findings };
}

/**
 * Every process reports its counters to one Redis hash every few seconds. Any front reads the hash for operators. The
 * reports add nothing to the path of a call.
 */
import { hostname } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { version } from '../config/version.js';
import { limits } from '../limits.js';
import { durationBounds } from '../obs/distribution.js';
import type { RedisConnection } from '../redis/connection.js';
import { type NodeCore, type NodeTold, nodeCore, nodeTold } from '../wire/operations_results.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

/** A report, when it was written by the Redis clock, and how long ago that was, in ms. */
export type SeenNode = (NodeTold | NodeCore) & { readonly told_ms: number; readonly silent_ms: number };

/** Reads the Redis server's time in ms, because clocks of nodes may differ. */
async function clockOf(client: RedisConnection['client']): Promise<number> {
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Parses a report. Another version may report other details, but its core fields are understood. */
function understood(text: string, wanted: 'whole' | 'core'): NodeTold | NodeCore | null {
  try {
    const told: unknown = JSON.parse(text);
    const whole = wanted === 'whole' ? nodeTold.safeParse(told) : null;
    return whole?.success ? whole.data : (nodeCore.safeParse(told).data ?? null);
  } catch {
    return null;
  }
}

/**
 * The processes that reported recently. A killed process stays listed for up to limits.node_age_ms_max. Details are
 * dropped beyond limits.nodes_told_bytes_max.
 */
export async function readNodes({
  connection,
  keys,
}: Pick<Backends, 'connection' | 'keys'>): Promise<SeenNode[]> {
  const client = connection.at(0)?.client;
  if (!client) throw new Error('the server of partition 0 is unavailable');
  const [now, all] = await Promise.all([clockOf(client), client.hgetall(keys.nodes())]);
  const seen: SeenNode[] = [];
  const gone: string[] = [];
  let bytes = 0;
  // Sorted, so that the same processes keep their details each time.
  for (const [name, text] of Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const space = text.indexOf(' ');
    const told_ms = Number(text.slice(0, space));
    const silent_ms = Math.max(0, now - told_ms);
    const fits = bytes + text.length <= limits.nodes_told_bytes_max;
    const told =
      silent_ms > limits.node_age_ms_max ? null : understood(text.slice(space + 1), fits ? 'whole' : 'core');
    if (told === null) gone.push(name);
    else if (seen.length < limits.nodes_shown_max) {
      seen.push({ ...told, told_ms, silent_ms });
      if (fits) bytes += text.length;
    }
  }
  if (gone.length > 0) await client.hdel(keys.nodes(), ...gone);
  return seen;
}

/**
 * Interval of event loop samples. Each sample wakes the process: at 20 ms, sampling would cost more than half of an
 * idle process's budget.
 */
const loop_look_ms = 100;
/** Below this share of busy time a process counts as idle, and its event loop delay is not measured. */
const idle_share_max = 0.02;

/** Creates a reader of CPU, memory and event loop delay since its previous call. */
function createPulse() {
  const delay = monitorEventLoopDelay({ resolution: loop_look_ms });
  delay.enable();
  let before = {
    cpu: process.cpuUsage(),
    at: performance.now(),
    loop: performance.eventLoopUtilization(),
  };
  const inMs = (nanoseconds: number) => Math.round(nanoseconds / 10_000) / 100;
  return {
    read() {
      const now = {
        cpu: process.cpuUsage(),
        at: performance.now(),
        loop: performance.eventLoopUtilization(),
      };
      const { utilization } = performance.eventLoopUtilization(now.loop, before.loop);
      const used = now.cpu.user + now.cpu.system - before.cpu.user - before.cpu.system;
      const share = used / 1_000 / Math.max(1, now.at - before.at);
      before = now;
      const found = {
        // The histogram includes the interval of the measuring timer itself.
        loop_p99_ms: Math.max(0, inMs(delay.percentile(99)) - loop_look_ms),
        loop_max_ms: Math.max(0, inMs(delay.max) - loop_look_ms),
        cpu: Math.round(share * 1_000) / 1_000,
        memory_bytes: process.memoryUsage.rss(),
      };
      delay.reset();
      if (utilization < idle_share_max) delay.disable();
      else delay.enable();
      return found;
    },
    stop: () => delay.disable(),
  };
}

/** Durations of all scripts, by bucket. */
function scriptTimes({ runner }: Backends): number[] {
  const sum = new Array<number>(durationBounds.length + 1).fill(0);
  for (const { counts } of runner.times.byName.values())
    for (const [i, count] of counts.entries()) sum[i] = (sum[i] as number) + count;
  return sum;
}

/** Reports this process regularly until it is stopped, and once more at shutdown. Must be the last role to start. */
export const tellAs =
  (role: string) =>
  async (backends: Backends, stopping: AbortSignal): Promise<Role> => {
    const { node, connection, keys, runner, troubles } = backends;
    const onError = troubles.onDelay(
      'the report of this process',
      'the operations page shows this process as silent',
    );
    const pulse = createPulse();
    const since_ms = Math.round(performance.timeOrigin);

    async function tell(): Promise<void> {
      const told: NodeTold = {
        ...{ id: node.id, role, host: hostname(), pid: process.pid, version, since_ms },
        state: stopping.aborted ? 'leaving' : 'serving',
        ...pulse.read(),
        scripts: scriptTimes(backends),
        ...Object.assign({}, ...node.parts.map((part) => part())),
      };
      node.told = told;
      // An unused Redis may belong to another installation.
      if (!connection.at(0)?.runId()) return;
      const at = { processes: keys.nodes() };
      await runner.call('presence/announce', 0, at, { id: node.id, report: JSON.stringify(told) });
    }

    let telling: Promise<void> | undefined;
    const tellSoon = () => {
      telling ??= tell()
        .catch(onError)
        .finally(() => {
          telling = undefined;
        });
      return telling;
    };
    const onStopping = () => void (telling ?? Promise.resolve()).then(tellSoon);
    stopping.addEventListener('abort', onStopping, { once: true });
    tellSoon();
    // Each start removes expired reports of killed processes, because operators may never open the page.
    await readNodes(backends).catch(onError);
    const timer = setInterval(tellSoon, limits.node_tell_ms);
    return {
      async stop() {
        clearInterval(timer);
        pulse.stop();
        await telling;
        await connection
          .at(0)
          ?.client.hdel(keys.nodes(), node.id)
          .catch(() => undefined);
      },
    };
  };

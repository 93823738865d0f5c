/**
 * Reports the state of this process to operators. Every process writes its counters to a Redis hash every few seconds,
 * and any front can show the hash. Calls never wait for a report.
 */
import { hostname } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { version } from '../config/version.js';
import { durationBounds } from '../obs/distribution.js';
import { shared } from '../shared.js';
import type { Time } from '../time.js';
import { type NodeCore, type NodeReport, nodeCore, nodeReport } from '../wire/admin_results.js';
import { wireLimits } from '../wire/limits.js';
import type { Backends } from './backends.js';
import { startHistory } from './history.js';
import { processLimits } from './limits.js';
import { clockOf } from './redis_clock.js';
import type { Role } from './role.js';

/** A process's report. `reported_ms` is when the report was made, according to the clock of Redis. */
export type SeenNode = (NodeReport | NodeCore) & { readonly reported_ms: number; readonly silent_ms: number };

/**
 * Parses a report. A process of another version may report other details, but the core fields always have the same
 * format.
 */
function understood(text: string, wanted: 'whole' | 'core'): NodeReport | NodeCore | null {
  try {
    const parsed: unknown = JSON.parse(text);
    const whole = wanted === 'whole' ? nodeReport.safeParse(parsed) : null;
    return whole?.success ? whole.data : (nodeCore.safeParse(parsed).data ?? null);
  } catch {
    return null;
  }
}

/**
 * Loads the recent reports of processes. A killed process stays in the list for up to `processLimits.node_age_ms_max`.
 * Details beyond `wireLimits.nodes_report_bytes_max` are dropped.
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
  // Sorts the reports by node. If all reports together are too large, the last ones lose their details. Because of the
  // order, the same nodes lose their details each time.
  for (const [name, text] of Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const space = text.indexOf(' ');
    const reported_ms = Number(text.slice(0, space));
    const silent_ms = Math.max(0, now - reported_ms);
    const fits = bytes + text.length <= wireLimits.nodes_report_bytes_max;
    const parsed =
      silent_ms > processLimits.node_age_ms_max
        ? null
        : understood(text.slice(space + 1), fits ? 'whole' : 'core');
    if (parsed === null) gone.push(name);
    else if (seen.length < wireLimits.nodes_shown_max) {
      seen.push({ ...parsed, reported_ms, silent_ms });
      if (fits) bytes += text.length;
    }
  }
  if (gone.length > 0) await client.hdel(keys.nodes(), ...gone);
  return seen;
}

/**
 * How often the event loop is measured, in ms. Each measurement wakes the process. An interval of 20 ms would use more
 * than half of the CPU time that an idle process may use.
 */
const loop_look_ms = 100;
/**
 * A process that is busy for less than this share of the time counts as idle. The event loop delay of an idle process
 * is not measured.
 */
const idle_share_max = 0.02;

function createPulse(time: Time) {
  const delay = monitorEventLoopDelay({ resolution: loop_look_ms });
  delay.enable();
  let before = {
    cpu: process.cpuUsage(),
    at: time.monotonic(),
    loop: performance.eventLoopUtilization(),
  };
  const inMs = (nanoseconds: number) => Math.round(nanoseconds / 10_000) / 100;
  return {
    read() {
      const now = {
        cpu: process.cpuUsage(),
        at: time.monotonic(),
        loop: performance.eventLoopUtilization(),
      };
      const { utilization } = performance.eventLoopUtilization(now.loop, before.loop);
      const used = now.cpu.user + now.cpu.system - before.cpu.user - before.cpu.system;
      const share = used / 1_000 / Math.max(1, now.at - before.at);
      before = now;
      const found = {
        // Subtracts the interval of the measuring timer, because the measured delay includes it.
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

function scriptTimes({ runner }: Backends): number[] {
  const sum = new Array<number>(durationBounds.length + 1).fill(0);
  for (const { counts } of runner.times.byName.values())
    for (const [i, count] of counts.entries()) sum[i] = (sum[i] as number) + count;
  return sum;
}

/**
 * Reports the state of this process regularly until the process stops, and once more at shutdown. Must be started after
 * all other roles.
 */
export const reportAs =
  (role: string) =>
  async (backends: Backends, stopping: AbortSignal): Promise<Role> => {
    const { node, time, connection, keys, runner, troubles } = backends;
    const onError = troubles.onDelay(
      'the report of this process',
      'the operations page shows this process as silent',
    );
    const pulse = createPulse(time);
    const since_ms = time.machine();

    async function publish(): Promise<void> {
      const report: NodeReport = {
        ...{ id: node.id, role, host: hostname(), pid: process.pid, version, since_ms },
        state: stopping.aborted ? 'leaving' : 'serving',
        ...pulse.read(),
        scripts: scriptTimes(backends),
        ...Object.assign({}, ...node.parts.map((part) => part())),
      };
      node.lastReport = report;
      // Reports nothing before this Redis server has passed its check, because the server may belong to another
      // installation.
      if (!connection.at(0)?.runId()) return;
      const at = { processes: keys.nodes() };
      await runner.call('presence/announce', 0, at, { id: node.id, report: JSON.stringify(report) });
    }

    const reportOnce = shared(() => publish().catch(onError));
    const onStopping = () => void (reportOnce.running() ?? Promise.resolve()).then(reportOnce);
    stopping.addEventListener('abort', onStopping, { once: true });
    reportOnce();
    // Reading the reports removes expired reports of killed processes. Otherwise, these reports would stay until an
    // operator opens the operations page.
    await readNodes(backends).catch(onError);
    const stopReporting = time.repeat(processLimits.node_tell_ms, reportOnce);
    const history = startHistory(backends);
    return {
      async stop() {
        stopReporting();
        await history.stop();
        pulse.stop();
        await reportOnce.running();
        await connection
          .at(0)
          ?.client.hdel(keys.nodes(), node.id)
          .catch(() => undefined);
      },
    };
  };

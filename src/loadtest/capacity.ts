/** Formats which resources a load needs, for `petrel capacity`. */
import type { Costs, Demand, Need } from './capacity_model.js';
import { shares } from './shares.js';
import { table, whole } from './table.js';

const gb = 2 ** 30;
/**
 * If the load average per core is above this value, other programs were running during the bench. The value is above 1,
 * because the bench itself keeps several processes per core busy.
 */
const busy_load_times = 3;

const size = (bytes: number) =>
  bytes >= gb ? `${(bytes / gb).toFixed(1)} GB` : `${(bytes / 2 ** 20).toFixed(0)} MB`;
const speed = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MB/s`;
const cores = (value: number) => `${value.toFixed(2)} cores`;

function needs(need: Need): string {
  const rows = [
    ['fronts', String(need.fronts), `${cores(need.front_cores)} of work`],
    [
      'Redis servers',
      String(need.shards),
      `${cores(need.redis_cores)} and ${size(need.redis_bytes)}; ${need.shards_for} decides`,
    ],
    ['flushers', String(need.flushers), cores(need.flush_cores)],
    ['webhook workers', String(need.workers), cores(need.worker_cores)],
    [
      'Postgres databases',
      String(need.databases),
      `${cores(need.postgres_cores)} for ${whole(need.postgres_rows)} rows/s, without background work`,
    ],
  ];
  const disks = `Disks: append-only files ${speed(need.aof_bytes)}, write-ahead logs ${speed(need.wal_bytes)}; Postgres grows by ${size(need.day_bytes)} a day`;
  const parts = Object.entries(need.parts)
    .map(([name, bytes]) => `${name} ${size(bytes)}`)
    .join(', ');
  return `${table(rows, 3)}\n\nMemory of Redis: ${parts}\n${disks}`;
}

function assumptions(costs: Costs, demand: Demand): string {
  const machine = Object.entries(costs.machine)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
    .join(', ');
  const busy = Number(costs.machine.load_average ?? 0) > busy_load_times * Number(costs.machine.cores ?? 1);
  return [
    ...(busy
      ? [
          'The machine was busy with other programs during the measurement, so the costs are too high. Measure again on an idle machine.',
        ]
      : []),
    `Costs measured on ${costs.made_at.slice(0, 10)} with Petrel ${costs.petrel}: ${costs.measured}.`,
    `Machine: ${machine}. Measure yours with npm run bench -- --costs <file>, and use it with petrel capacity --costs <file>.`,
    'Costs are CPU time per call, measured at half of the highest rate of one front where possible. They fall at higher rates, where Redis and the flusher work in larger batches.',
    `The plan uses ${Math.round(demand.use * 100)} % of each core and of each server's memory. A front, a flusher and a worker use one core each; Redis runs scripts on one.`,
    `The plan assumes that traffic is even over the partitions. A single bot is limited by one Redis server.`,
    `Data stays in Redis for ${(demand.hot_s / 3_600).toFixed(1)} hours after its last use. A message text has ${costs.message_text_bytes} bytes. Bytes of media files are not included.`,
    `The mix is ${Object.entries(shares)
      .map(([kind, share]) => `${kind} ${share} %`)
      .join(', ')}; --mix sets another one.`,
    'The figures for disks count only the bytes that calls write, without deliveries, rewrites of append-only files and vacuuming. An append-only file takes up to three times the memory of its server.',
    `Updates wait ${demand.waiting_s} s for their receivers on average. Replicas, backups and the balancer are not counted.`,
  ]
    .map((line) => `- ${line}`)
    .join('\n');
}

export function capacityText(costs: Costs, demand: Demand, need: Need): string {
  const traffic = Object.entries(demand.calls)
    .map(([kind, rate]) => `${whole(rate)} ${kind}`)
    .join(', ');
  return (
    `For ${traffic} per second,  ${whole(demand.bots)} bots, ${whole(demand.chats)} chats and ${whole(demand.deliveries)} webhook deliveries per second:\n\n` +
    `${needs(need)}\n\nAssumptions\n${assumptions(costs, demand)}\n`
  );
}

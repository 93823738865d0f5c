/**
 * Defines the result file of a bench run. `--schema` prints the definition as JSON Schema. The version changes when a
 * field is changed or removed. A new field must be optional and does not change the version.
 */
import { z } from 'zod';

export const results_version = 1;

const count = z.number().describe('a count');
const share = z.number().describe('1 is 100 %');

const percentilesMs = z
  .object({
    p50: z.number(),
    p75: z.number(),
    p90: z.number(),
    p95: z.number(),
    p99: z.number(),
    p999: z.number(),
    max: z.number(),
  })
  .describe('latency percentiles in milliseconds; p999 is 99.9 %');

const cpu = z
  .record(z.string(), z.number().nullable())
  .describe(
    'microseconds of CPU time per request, by process, from the operating system: server, redis, flush, postgres, load',
  );

const side = z.object({
  label: z.string(),
  role: z
    .enum(['base', 'subject', 'peer'])
    .describe(
      'base: the floor or the small case; subject: the service; peer: another program in the same run',
    ),
  rate: z.number().describe('requests answered per second, closed loop; median of the rounds'),
  rates: z.array(z.number()).describe('of each round'),
  taken: z
    .array(share)
    .optional()
    .describe(
      "of each round: share of the machine's CPU time that other programs used, or that the host gave to other machines; absent in older files and without /proc",
    ),
  cpu,
  disk: z
    .object({ redis: z.number(), postgres: z.number() })
    .optional()
    .describe('bytes a request of the append-only file and of the write-ahead log; absent in older files'),
  busy: share.nullable().describe('share of one core used by the server'),
  scripts: z.number().describe('Redis scripts per request, including the scripts of the flusher'),
  commands: z
    .number()
    .describe('Redis commands per request, including those inside scripts and of the flusher'),
  p50_ms: z.number(),
  p99_ms: z.number(),
  journal: count.describe('entries waiting for Postgres at the end of a round; the maximum'),
});

const scenario = z.object({
  name: z.string(),
  title: z.string(),
  proof: z.string().describe('name in the list of goals; empty when there is no goal'),
  goal: z
    .object({
      share: z.number().optional().describe("minimum share of the base's rate"),
      redis_us: z.number().optional().describe('maximum CPU time of Redis per call'),
      growth: z.number().optional().describe("maximum CPU time per call, as a multiple of the base's"),
      of: z
        .enum(['server', 'both'])
        .optional()
        .describe('CPU time of the server only, or of server and Redis'),
    })
    .nullable(),
  connections: count,
  sides: z.array(side),
  ratio: share.nullable().describe("subject's rate divided by the base's; median of the rounds"),
  ratios: z.array(z.number()).describe('of each round'),
  cpu_ratio: share.nullable().describe("base's CPU time per request divided by the subject's"),
  growth: z
    .object({ server: z.number().nullable(), redis: z.number().nullable(), both: z.number().nullable() })
    .nullable()
    .describe("subject's CPU time per request divided by the base's"),
  drained_s: z.number().describe('seconds until Postgres had all changes after the last round'),
});

const latency = z.object({
  scenario: z.string(),
  label: z.string(),
  role: z.enum(['base', 'subject', 'peer']),
  share: z.number().nullable().describe("offered rate divided by the service's highest rate"),
  offered: z.number().describe('requests per second, open loop'),
  answered: z.number().describe('answers a second'),
  failed: count,
  cpu,
  lag_s: z.number().describe('seconds until Postgres had all changes after the load; the maximum'),
  late_ms: z.number().describe('how late the load itself sent a due request at most'),
  rounds: count,
  ms: percentilesMs,
});

const scaling = z.object({
  fronts: count,
  rate: z.number(),
  predicted: z.number().nullable().describe('predicted by the model from the costs at one front'),
  cpu,
  p99_ms: z.number(),
  cores: z.number().describe('cores not used by other processes of the machine'),
});

const finding = z.object({
  key: z.string().describe('stable between versions'),
  proof: z.string(),
  what: z.string(),
  measured: z.string(),
  value: z.number().nullable(),
  goal: z.string(),
  met: z.boolean().nullable().describe('null when there is no goal'),
});

const soak = z.object({
  at_s: z.number(),
  rate: z.number(),
  resident: z.record(z.string(), z.number()).describe('resident bytes of each process'),
  redis_data: z.number().describe('bytes of keys and their expiry entries'),
  journal: count,
  errors: count,
  p99_ms: z.number(),
});

export const resultsSchema = z
  .object({
    schema: z.literal('petrel-bench'),
    version: z.literal(results_version),
    made_at: z.iso.datetime(),
    petrel: z.string(),
    commit: z.string().describe('empty when unknown'),
    ended: z.string().describe('why the run ended early; empty when it did not'),
    seconds: z.number().describe('duration of the run'),
    machine: z.record(z.string(), z.union([z.string(), z.number()])),
    settings: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
    scenarios: z.array(scenario),
    latencies: z.array(latency),
    scaling: z.array(scaling),
    findings: z.array(finding),
    soak: z.array(soak),
    goals: z.array(
      z.object({
        proof: z.string(),
        what: z.string(),
        figure: z.string(),
        goal: z.string(),
        met: z.boolean().nullable(),
      }),
    ),
  })
  .describe('A run of the Petrel bench');

export type Results = z.infer<typeof resultsSchema>;
export type ScenarioResult = z.infer<typeof scenario>;
export type SideResult = z.infer<typeof side>;
export type LatencyPercentiles = z.infer<typeof percentilesMs>;
export type LatencyResult = z.infer<typeof latency>;
export type ScalingResult = z.infer<typeof scaling>;
export type Finding = z.infer<typeof finding>;
export type SoakSample = z.infer<typeof soak>;
export type GoalResult = Results['goals'][number];

export const jsonSchema = (): object => z.toJSONSchema(resultsSchema);

export function readResults(text: string): Results {
  const parsed = resultsSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new Error(`this is not a result file of the bench:  ${z.prettifyError(parsed.error)}`);
}

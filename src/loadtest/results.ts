/**
 * What a run of the bench writes for machines. One schema says what it is, and `--schema` prints it as JSON Schema. A field
 * that changes its meaning or goes away raises the version; one that is added does not.
 */
import { z } from 'zod';

export const results_version = 1;

const count = z.number().describe('a count');
const share = z.number().describe('1 is all of it');

const spread = z
  .object({
    p50: z.number(),
    p75: z.number(),
    p90: z.number(),
    p95: z.number(),
    p99: z.number(),
    p999: z.number(),
    max: z.number(),
  })
  .describe('milliseconds below which so many percent of the answers came; p999 is 99.9 percent');

const cpu = z
  .record(z.string(), z.number().nullable())
  .describe(
    'microseconds of CPU time a request, by process, from the operating system: server, redis, flush, postgres, load',
  );

const side = z.object({
  label: z.string(),
  role: z
    .enum(['base', 'subject', 'peer'])
    .describe(
      'base: the floor or the small case; subject: the service; peer: another program in the same run',
    ),
  rate: z.number().describe('requests answered a second, closed loop: the median of the rounds'),
  rates: z.array(z.number()).describe('of each round'),
  cpu,
  disk: z
    .object({ redis: z.number(), postgres: z.number() })
    .describe('bytes a request of the append-only file and of the write-ahead log'),
  busy: share.nullable().describe('of one core, used by the server'),
  scripts: z.number().describe('scripts that Redis ran for a request, the flusher included'),
  commands: z
    .number()
    .describe('commands that Redis ran for a request, inside scripts and for the flusher too'),
  p50_ms: z.number(),
  p99_ms: z.number(),
  journal: count.describe('entries that waited for Postgres when the longest such round ended'),
});

const scenario = z.object({
  name: z.string(),
  title: z.string(),
  proof: z.string().describe('row of the list of goals; empty where there is none'),
  goal: z
    .object({
      share: z.number().optional().describe("least share of the base's rate"),
      redis_us: z.number().optional().describe('most CPU time of Redis a call'),
      growth: z.number().optional().describe("most CPU time a call, as a multiple of the base's"),
      of: z.enum(['server', 'both']).optional().describe('whose CPU time: the server, or Redis too'),
    })
    .nullable(),
  connections: count,
  sides: z.array(side),
  ratio: share.nullable().describe("subject's rate by the base's, the median of the rounds"),
  ratios: z.array(z.number()).describe('of each round'),
  cpu_ratio: share.nullable().describe("base's CPU time a request by the subject's"),
  growth: z
    .object({ server: z.number().nullable(), redis: z.number().nullable(), both: z.number().nullable() })
    .nullable()
    .describe("subject's CPU time a request by the base's"),
  drained_s: z.number().describe('until Postgres had everything after the last round'),
});

const latency = z.object({
  scenario: z.string(),
  label: z.string(),
  role: z.enum(['base', 'subject', 'peer']),
  share: z.number().nullable().describe("offered rate by the service's highest"),
  offered: z.number().describe('requests a second, open loop'),
  answered: z.number().describe('answers a second'),
  failed: count,
  cpu,
  lag_s: z.number().describe('until Postgres had everything after the load; the longest'),
  late_ms: z.number().describe('how late the load itself was at most in sending what was due'),
  rounds: count,
  ms: spread,
});

const scaling = z.object({
  fronts: count,
  rate: z.number(),
  predicted: z.number().nullable().describe('by the model, from the costs at one front'),
  cpu,
  p99_ms: z.number(),
  cores: z.number().describe('that no other process of the machine used meanwhile'),
});

const finding = z.object({
  key: z.string().describe('does not change between versions'),
  proof: z.string(),
  what: z.string(),
  measured: z.string(),
  value: z.number().nullable(),
  goal: z.string(),
  met: z.boolean().nullable().describe('null where there is no goal'),
});

const soak = z.object({
  at_s: z.number(),
  rate: z.number(),
  resident: z.record(z.string(), z.number()).describe('bytes of each process'),
  redis_data: z.number().describe('bytes of keys and deadlines'),
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
    commit: z.string().describe('empty where it is not known'),
    ended: z.string().describe('why the run ended early; empty when it did not'),
    seconds: z.number().describe('how long the run took'),
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
export type LatencyResult = z.infer<typeof latency>;
export type ScalingResult = z.infer<typeof scaling>;
export type Finding = z.infer<typeof finding>;
export type SoakSample = z.infer<typeof soak>;
export type GoalResult = Results['goals'][number];

/** JSON Schema of the file. */
export const jsonSchema = (): object => z.toJSONSchema(resultsSchema);

/** A file of an earlier run. Throws with what is wrong in it. */
export function readResults(text: string): Results {
  const parsed = resultsSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new Error(`this is no file of the bench: ${z.prettifyError(parsed.error)}`);
}

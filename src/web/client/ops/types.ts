/** Answers of the calls for operators, as far as the page shows them; `/docs` describes all fields. */
export interface Call {
  call: string;
  ok: number;
  refused: number;
  slowed: number;
  failed: number;
  gone: number;
  times: number[];
}

export interface Deliver {
  outcomes: Record<string, number>;
  dead: Record<string, number>;
  retries: number;
  times: number[];
  ages: number[];
  drains: number;
  open: number;
  connections: number;
}

export interface Flush {
  entries: number;
  rows: number;
  failures: number;
  quarantined: number;
  lag_ms: number;
  partitions: number;
}

export interface Node {
  id: string;
  role: string;
  host: string;
  pid: number;
  version: string;
  since_ms: number;
  state: 'serving' | 'leaving';
  told_ms: number;
  silent_ms: number;
  engine?: string;
  loop_p99_ms?: number;
  loop_max_ms?: number;
  cpu?: number;
  memory_bytes?: number;
  scripts?: number[];
  front?: { open: number; polls: number; streams: number; calls: Call[] };
  deliver?: Deliver;
  flush?: Flush;
}

export interface RedisServer {
  server: string;
  version: string;
  used_bytes: number;
  max_bytes: number;
  appending: boolean;
  replicas: number;
  clients: number;
  commands_per_second: number;
}

export interface Overview {
  at_ms: number;
  version: string;
  node: string;
  bounds_seconds: number[];
  silent_after_ms: number;
  findings: Array<{ bad: boolean; what: string; todo: string }>;
  nodes: Node[];
  journal: {
    waiting: number;
    fullest: number;
    high_water: number;
    flushed_ms_ago: number | null;
    quarantined: number;
  } | null;
  queues: { outbox: number; webhooks_due: number; webhooks_overdue: number; overdue_ms: number } | null;
  redis: RedisServer[] | null;
  postgres: {
    version: string;
    connections: number;
    connections_max: number;
    ms: number;
    webhooks: number;
    failing: number;
    dead_letters: number;
  } | null;
}

export interface RankedBot {
  id: number;
  username: string;
  webhook_host?: string;
  pending: number;
  failing_since?: number;
  last_error?: string;
  last_error_date?: number;
  delivered: number;
  failed: number;
  dead_letters: number;
}

export interface Letter {
  update_id: number;
  type: string;
  reason: string;
  date: number;
}

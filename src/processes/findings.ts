/** What is not as it should be, and what to do about it: pure, from facts that `petrel doctor` gathered. */

export interface ServerFacts {
  readonly server: string;
  readonly usedBytes: number;
  /** 0: no bound */
  readonly maxBytes: number;
  readonly replicas: number;
  readonly appending: boolean;
}

export interface DatabaseFacts {
  /** As people call it: `Postgres`, or with its number. */
  readonly database: string;
  readonly connections: number;
  readonly connectionsMax: number;
  readonly quarantined: number;
  /** Days to come that have a partition for failures of deliveries; null where no partition lies. */
  readonly failureDaysAhead: number | null;
  /** The same for messages. */
  readonly messageDaysAhead: number | null;
  /** When it was last found to have gone back in time, in ms ago, and what it lost; null for never. */
  readonly lost: { readonly ago: number; readonly transactions: number } | null;
  /** Partitions whose hot entities are being written again since. */
  readonly rewriting: number;
}

export interface Facts {
  readonly engine: { readonly note: string | undefined };
  /** What Redis was warned of before it was used. */
  readonly warnings: readonly string[];
  readonly servers: readonly ServerFacts[];
  readonly journal: {
    readonly waiting: number;
    /** Share of its bound that the fullest one has come to. */
    readonly fullest: number;
    /** Age of the last write-behind, in ms; null for never. */
    readonly flushedAgo: number | null;
  };
  readonly overdueWebhooks: number;
  /** Flushers that were seen lately, and nodes of all roles. */
  readonly flushers: number;
  readonly nodes: number;
  /** The control database first. */
  readonly databases: readonly DatabaseFacts[];
  /** Partitions on their way to another database: which, and how long ago the last process at it told of itself; null for none. */
  readonly moving: { readonly what: string; readonly paused: boolean; readonly silentMs: number } | null;
  /** Nothing is sent to webhooks and browsers. */
  readonly held: boolean;
  /** Why uploaded files cannot be written; null when they can, or when nobody looked. */
  readonly files: string | null;
  /** When Redis was last found to have lost changes, in ms ago; null for never. */
  readonly lostAgo: number | null;
}

export interface Finding {
  /** Something fails, or will: as opposed to what is merely not advised. */
  readonly bad: boolean;
  readonly what: string;
  readonly todo: string;
}

const day_ms = 86_400_000;
const flushed_ms_max = 30_000;
/** After which a move counts as left. */
const left_ms = 15_000;
const percent = (share: number) => `${Math.round(share * 100)} %`;

function ofServer({ server, usedBytes, maxBytes, replicas, appending }: ServerFacts): Finding[] {
  const found: Finding[] = [];
  const add = (bad: boolean, what: string, todo: string) =>
    found.push({ bad, what: `${server} ${what}`, todo });
  if (!appending)
    add(true, 'cannot write its append-only file', 'look at its disk and its log: it refuses changes by now');
  if (maxBytes === 0)
    add(
      false,
      'has no bound for its memory',
      'set maxmemory below what the machine has: past it the machine ends it',
    );
  else if (usedBytes > 0.8 * maxBytes)
    add(
      usedBytes > 0.95 * maxBytes,
      `has used ${percent(usedBytes / maxBytes)} of its memory`,
      'give it more, lower HOT_TTL_MS, or add masters and move slots to them',
    );
  if (replicas === 0)
    add(
      false,
      'has no replica',
      'add one, or be ready to restore: its loss takes what is not written behind with it',
    );
  return found;
}

function ofJournals({ journal, flushers }: Facts): Finding[] {
  const found: Finding[] = [];
  const stuck = journal.waiting > 0 && (journal.flushedAgo ?? Number.POSITIVE_INFINITY) > flushed_ms_max;
  if (flushers === 0)
    found.push({
      bad: true,
      what: 'no flusher runs',
      todo: 'start "petrel flush" (or "petrel all"): journals grow until changes are refused',
    });
  else if (stuck)
    found.push({
      bad: true,
      what: 'journals wait and nothing was written for 30 s',
      todo: 'look at the log of the flushers and at Postgres',
    });
  if (journal.fullest > 0.5)
    found.push({
      bad: journal.fullest > 0.9,
      what: `the fullest journal is at ${percent(journal.fullest)} of its bound`,
      todo: 'add flushers, or look for what holds Postgres up; at the bound changes answer 429',
    });
  return found;
}

function ofDatabase(facts: DatabaseFacts, flushers: number): Finding[] {
  const { database, connections, connectionsMax, quarantined, lost, rewriting } = facts;
  const { failureDaysAhead, messageDaysAhead } = facts;
  const found: Finding[] = [];
  if (quarantined > 0)
    found.push({
      bad: true,
      what: `${quarantined} entries are in quarantine in ${database}`,
      todo: 'Postgres refused them: the table quarantine says why, and keeps what they hold',
    });
  if (messageDaysAhead !== null && messageDaysAhead < 1)
    found.push({
      bad: flushers > 0,
      what: `${database} has no partition for tomorrow’s messages`,
      todo: 'flushers make them each minute, and their log says why not; until then rows go to messages_default',
    });
  if (failureDaysAhead !== null && failureDaysAhead < 1)
    found.push({
      // Flushers make them as soon as they run.
      bad: flushers > 0,
      what: `${database} has no partition for tomorrow’s failures of deliveries`,
      todo: 'flushers make them each minute, and their log says why not; until then rows go to delivery_failures_default',
    });
  if (connections > 0.9 * connectionsMax)
    found.push({
      bad: true,
      what: `${connections} of ${connectionsMax} connections to ${database} are open`,
      todo: 'lower POSTGRES_POOL, raise max_connections, or put a pooler between',
    });
  if (lost !== null && lost.ago < 7 * day_ms)
    found.push({
      bad: rewriting > 0,
      what:
        `${database} went back in time within a week and lost ${lost.transactions} transactions` +
        (rewriting > 0 ? `; ${rewriting} partitions are still being written again` : ''),
      todo: 'users, bots and settings of that time are gone, and their tokens with them: see the runbook PetrelPostgresWentBack',
    });
  return found;
}

function ofMove({ what, paused, silentMs }: NonNullable<Facts['moving']>): Finding {
  const left = silentMs > left_ms;
  return {
    bad: left && paused,
    what: `${what}${left ? ', and no process goes on with it' : ''}${paused ? '; nothing of them is written behind meanwhile' : ''}`,
    todo: '"petrel shards list" tells which command goes on with it, and which ends it',
  };
}

/** What is bad first. Empty where everything is as it should be. */
export function findingsOf(facts: Facts): Finding[] {
  const { engine, warnings, servers, overdueWebhooks, nodes, databases, moving, lostAgo } = facts;
  const found: Finding[] = [];
  if (engine.note)
    found.push({
      bad: false,
      what: 'the current HTTP engine does not run here, the older one does',
      todo: 'use a system with glibc 2.38 or newer, or the image',
    });
  for (const warning of warnings) {
    const [what = warning, todo = ''] = warning.split(/ \((?=set )/);
    found.push({ bad: false, what, todo: todo.replace(/\)$/, '') });
  }
  found.push(
    ...servers.flatMap(ofServer),
    ...ofJournals(facts),
    ...databases.flatMap((database) => ofDatabase(database, facts.flushers)),
    ...(moving === null ? [] : [ofMove(moving)]),
  );
  if (facts.held)
    found.push({
      bad: false,
      what: 'this is a drill: nothing is sent to webhooks and browsers',
      todo: '"petrel resume" ends it; first stop the original, or both deliver',
    });
  if (facts.files !== null)
    found.push({
      bad: true,
      what: facts.files,
      todo: 'uploads answer 503, and no front starts until it is mended',
    });
  if (nodes === 0)
    found.push({
      bad: true,
      what: 'no node runs',
      todo: 'start "petrel front", "petrel deliver" and "petrel flush"',
    });
  if (overdueWebhooks > 0)
    found.push({
      bad: true,
      what: `${overdueWebhooks} webhooks have updates that nobody delivers`,
      todo: 'start "petrel deliver", or more of them',
    });
  if (lostAgo !== null && lostAgo < 7 * day_ms)
    found.push({
      bad: false,
      what: 'Redis lost changes within a week',
      todo: '"petrel redis rebuild" says when and what; set appendfsync always, and give each master a replica',
    });
  return found.sort((a, b) => Number(b.bad) - Number(a.bad));
}

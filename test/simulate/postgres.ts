/**
 * Simulates Postgres behind the interface `Pool`, with rows in memory. Implements the statements of the flusher, of
 * recovery, of read-back and of control changes. The scheduler runs each statement or batch in one step, and may
 * deliver its answer in a later step. A statement can commit, can fail and be rolled back, or can commit without an
 * answer. `simulation.test.ts` compares this simulation with a real PostgreSQL.
 */
import pg from 'pg';
import { journalTables } from '../../src/journal/tables.js';
import type { Call, Pool, Queryable, Result, Statement, Transaction } from '../../src/postgres/pool.js';
import { type ControlAnswers, type ControlTables, controlAnswers } from './control_tables.js';
import type { Choice, Owner, Scheduler } from './scheduler.js';

interface Row {
  readonly key: readonly number[];
  readonly version: number;
  readonly record: Buffer | null;
}

interface Sequence {
  readonly key: readonly number[];
  readonly last: number;
  readonly version: number;
  readonly incarnation: number;
}

interface Partition {
  readonly partition: number;
  readonly incarnation: number;
  readonly flushed_version: number;
  readonly flushed_at: Date | null;
  readonly run_id: string | null;
}

/** Called for each row that a batch writes, even if the table has a newer version of the row. */
export type OnRow = (kind: string, key: readonly number[], version: number, record: Buffer | null) => void;

/** The flushed rows. A row object is replaced and never modified, so a copy of the maps is a copy of the state. */
export class Tables {
  readonly rows = new Map<string, Map<string, Row>>();
  readonly sequences = new Map<string, Map<string, Sequence>>();
  partitions = new Map<number, Partition>();
  readonly onRow: OnRow;

  constructor(onRow: OnRow = () => undefined) {
    this.onRow = onRow;
  }

  copy(): Tables {
    const copied = new Tables(this.onRow);
    for (const [name, rows] of this.rows) copied.rows.set(name, new Map(rows));
    for (const [name, rows] of this.sequences) copied.sequences.set(name, new Map(rows));
    copied.partitions = new Map(this.partitions);
    return copied;
  }

  of(table: string): Map<string, Row> {
    const known = this.rows.get(table) ?? new Map<string, Row>();
    this.rows.set(table, known);
    return known;
  }

  sequencesOf(table: string): Map<string, Sequence> {
    const known = this.sequences.get(table) ?? new Map<string, Sequence>();
    this.sequences.set(table, known);
    return known;
  }
}

const headBytes = 20;

/** Decodes the arrays of `src/postgres/arrays.ts`. Other arrays are passed as they are. */
function listOf(value: unknown): ReadonlyArray<number | Buffer | null> {
  if (!Buffer.isBuffer(value)) return value as number[];
  if (value.readInt32BE(0) === 0) return [];
  const isBigint = value.readInt32BE(8) === 20;
  const found: Array<number | Buffer | null> = [];
  for (let i = 0, at = headBytes; i < value.readInt32BE(12); i++) {
    const size = value.readInt32BE(at);
    at += 4;
    if (size < 0) found.push(null);
    else if (isBigint) found.push(value.readInt32BE(at) * 2 ** 32 + value.readUInt32BE(at + 4));
    else found.push(Buffer.from(value.subarray(at, at + size)));
    at += Math.max(0, size);
  }
  return found;
}

const numbersOf = (value: unknown) => listOf(value) as number[];

const refusal = (code: string, text: string) =>
  Object.assign(new pg.DatabaseError(text, text.length, 'error'), { code });
const lost = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });

type Run = (tables: Tables, values: readonly unknown[]) => object[];

const plainText = ({ text }: Statement): string =>
  text.replace(/^select q\.\* from \(([\s\S]*)\) q where \(select true from require_current.*$/, '$1').trim();

const statements = new Map<string, Run>();

for (const { kind, table, columns, dated, sequence } of journalTables) {
  statements.set(`flush_${table}`, (tables, values) => {
    const lists = values.map(listOf);
    const [versions, records] = lists.slice(columns.length + (dated ? 1 : 0)) as [number[], Buffer[]];
    const rows = tables.of(table);
    for (let i = 0; i < versions.length; i++) {
      const key = columns.map((_, column) => lists[column]?.[i] as number);
      const version = versions[i] as number;
      tables.onRow(kind, key, version, records[i] ?? null);
      const stored = rows.get(key.join(':'));
      if (stored === undefined || stored.version < version)
        rows.set(key.join(':'), { key, version, record: records[i] ?? null });
    }
    return [];
  });
  statements.set(`flush_undated_${table}`, (tables, values) => {
    const lists = values.map(numbersOf);
    const rows = tables.of(table);
    const versions = lists.at(-1) as number[];
    for (let i = 0; i < versions.length; i++) {
      const key = columns.map((_, column) => lists[column]?.[i] as number);
      const stored = rows.get(key.join(':'));
      if (stored !== undefined && stored.version < (versions[i] as number))
        rows.set(key.join(':'), { key, version: versions[i] as number, record: null });
    }
    return [];
  });
  if (sequence === undefined) continue;
  statements.set(`flush_${sequence.table}`, (tables, values) => {
    const lists = values.map(numbersOf);
    const n = sequence.columns.length;
    const rows = tables.sequencesOf(sequence.table);
    for (let i = 0; i < (lists[n]?.length ?? 0); i++) {
      const key = sequence.columns.map((_, column) => lists[column]?.[i] as number);
      const [last, version, incarnation] = [lists[n]?.[i], lists[n + 1]?.[i], lists[n + 2]?.[i]] as number[];
      const stored = rows.get(key.join(':'));
      const next = { key, last, version, incarnation } as Sequence;
      rows.set(
        key.join(':'),
        stored === undefined
          ? next
          : {
              key,
              last: Math.max(stored.last, next.last),
              version: Math.max(stored.version, next.version),
              incarnation: stored.last < next.last ? next.incarnation : stored.incarnation,
            },
      );
    }
    return [];
  });
}

statements.set('flush_watermarks', (tables, values) => {
  const [partitions, versions, incarnations] = values.map(numbersOf) as [number[], number[], number[]];
  for (const [i, partition] of partitions.entries()) {
    const stored = tables.partitions.get(partition);
    const [version, incarnation] = [versions[i] as number, incarnations[i] as number];
    if (stored && stored.incarnation > incarnation)
      throw refusal('PTL03', `the incarnation of partition ${partition} was raised`);
    tables.partitions.set(partition, {
      partition,
      incarnation: stored?.incarnation ?? incarnation,
      run_id: stored?.run_id ?? null,
      flushed_version: Math.max(stored?.flushed_version ?? 0, version),
      flushed_at: new Date(0),
    });
  }
  return [];
});

const rowsOf: Run = (tables, [asked]) =>
  numbersOf(asked).flatMap((partition) => tables.partitions.get(partition) ?? []);
statements.set('flush_incarnations', rowsOf);
statements.set('seen_incarnations', rowsOf);
statements.set('claim_seals', () => []);
statements.set('note_redis_loss', () => []);

statements.set('raise_incarnations', (tables, values) => {
  const [partitions, exceeds, seen] = values.slice(0, 3).map(numbersOf) as [number[], number[], number[]];
  const harmless = numbersOf(values[4]);
  const raised: object[] = [];
  for (const [i, partition] of partitions.entries()) {
    const stored = tables.partitions.get(partition);
    if (stored && (stored.incarnation !== seen[i] || stored.flushed_version > (harmless[i] as number)))
      continue;
    const above = stored ? Math.max(stored.incarnation, Math.floor(stored.flushed_version / 2 ** 40)) : 0;
    const incarnation = Math.max(above, exceeds[i] as number) + 1;
    tables.partitions.set(partition, {
      ...{ partition, incarnation, run_id: String(values[3]) },
      flushed_version: stored?.flushed_version ?? 0,
      flushed_at: stored?.flushed_at ?? null,
    });
    const post = tables.sequencesOf('post_sequences').get(String(partition))?.last ?? 0;
    raised.push({ partition, incarnation, post });
  }
  return raised;
});

const present = (rows: ReadonlyArray<Row | undefined>): Row[] =>
  rows.flatMap((row) => (row?.record ? [row] : []));

/** Returns the rows of a table that belong to a post. */
const partsOf = (tables: Tables, table: string, [partition, number]: readonly unknown[]): Row[] =>
  present([...tables.of(table).values()]).filter(
    ({ key }) => key[0] === Number(partition) && key[1] === Number(number),
  );

/** Returns the reactions to a post by emoji, newest first. */
const reactionsTo = (tables: Tables, place: readonly unknown[]) =>
  partsOf(tables, 'post_reactions', place)
    .map(({ key, version, record }) => ({
      ...{ user_id: key[2] as number, emoji: key[3] as number },
      ...{ version, record },
    }))
    .sort((a, b) => a.emoji - b.emoji || b.version - a.version);

/** The queries that the program sends without a statement name. They are recognised by their text. */
const queries: ReadonlyArray<readonly [pattern: RegExp, run: Run]> = [
  [
    // Another form of this query limits the bytes of the result. The limit has no effect here, because every result is
    // small.
    /^select message_id, version, record from/,
    (tables, [chat, user, ids]) =>
      (ids as number[]).flatMap((id) => {
        const row = tables.of('messages').get(`${chat}:${user}:${id}`);
        return row ? [{ message_id: id, version: row.version, record: row.record }] : [];
      }),
  ],
  [
    /^select message_id from messages/,
    (tables, [chat, user, before]) =>
      [...tables.of('messages').values()]
        .filter(({ key, record }) => key[0] === chat && key[1] === user && record !== null)
        .map(({ key }) => ({ message_id: key[2] as number }))
        .filter((row) => row.message_id < (before as number))
        .sort((a, b) => b.message_id - a.message_id)
        .slice(0, 1),
  ],
  [
    /^select last_message_id, version, incarnation from chat_sequences/,
    (tables, [chat, user]) => {
      const row = tables.sequencesOf('chat_sequences').get(`${chat}:${user}`);
      return row ? [{ ...row, last_message_id: row.last }] : [];
    },
  ],
  [
    /^select version, record from chat_pins/,
    (tables, [chat, user]) => {
      const row = tables.of('chat_pins').get(`${chat}:${user}`);
      return row ? [row] : [];
    },
  ],
  [/select record from bot_update_masks/, () => []],
  [
    /^select version, record from posts where/,
    (tables, [partition, number]) => present([tables.of('posts').get(`${partition}:${number}`)]),
  ],
  [/^select version, record from post_tallies/, (tables, place) => partsOf(tables, 'post_tallies', place)],
  [
    /^select record from post_reactions/,
    (tables, [partition, number, user]) =>
      reactionsTo(tables, [partition, number])
        .filter((row) => row.user_id === Number(user))
        .sort((a, b) => a.version - b.version)
        .map(({ record }) => ({ record })),
  ],
  [
    /^select r\.user_id, r\.emoji, r\.version, r\.record/,
    (tables, [emoji, partition, number, limit]) =>
      numbersOf(emoji)
        .sort((a, b) => a - b)
        .flatMap((each) =>
          reactionsTo(tables, [partition, number])
            .filter((row) => row.emoji === each)
            .slice(0, Number(limit)),
        ),
  ],
  [
    /^select user_id, emoji, version, record from post_reactions/,
    (tables, [partition, number, emoji, version, , only, limit]) =>
      reactionsTo(tables, [partition, number])
        .filter((row) =>
          row.emoji === Number(emoji) ? row.version < Number(version) : row.emoji > Number(emoji) && !only,
        )
        .slice(0, Number(limit)),
  ],
];

/** Maintenance is not simulated: its statements find no daily partitions and nothing to purge. */
const idle = /^(purge_|claim_)/;
const absent = /^read_spans_/;

/** A transaction that has ended: its calls, and the rows of the last call or the code of the error that ended it. */
export interface Ended {
  readonly calls: readonly Call[];
  readonly rows: readonly object[];
  readonly refused?: string | undefined;
}

export type Fault = 'none' | 'refused' | 'unanswered';

/** A transaction uses either control tables or tables of flushed data, and never both. */
type Domain = 'control' | 'flushed';

/** An open transaction. The first statement determines the domain: control tables or flushed data. */
interface Open {
  readonly owner: Owner;
  /** Undoes the changes of the transaction. */
  rollBack: () => void;
}

interface Waiting {
  readonly owner: Owner;
  readonly what: string;
  readonly run: () => void;
  /**
   * The transactions of a domain run one after the other. A plain query has no domain (null) and waits for no
   * transaction.
   */
  readonly domain: Domain | null;
  readonly transaction: Open | null;
  /** The statement does not reach Postgres before this time. */
  readonly atMs: number;
}

export class SimulatedPostgres {
  tables: Tables;
  /** Postgres refuses every statement until this time. */
  awayUntilMs = 0;
  /** No statement of this process reaches Postgres before this time. */
  readonly lateUntilMs = new Map<Owner, number>();
  /** This process gets no answer from Postgres before this time. */
  readonly answersLateUntilMs = new Map<Owner, number>();
  /** All transactions in order, for a comparison with a real PostgreSQL. */
  readonly transactions: Ended[] = [];
  /** The share of statements, and of answers, that are late by up to 6 s. */
  slow = 0;
  /** Decides at random whether a statement or a commit fails, and whether its answer is lost. */
  fault: () => Fault = () => 'none';
  readonly #scheduler: Scheduler;
  /** The state of control tables. */
  controls: ControlTables;
  readonly #answers: ControlAnswers;
  #waiting: Waiting[] = [];
  /** The answers that have not been delivered yet. */
  #answered: Array<{ readonly owner: Owner; readonly atMs: number; readonly deliver: () => void }> = [];
  /** The open transaction of each domain. */
  readonly #open = new Map<Domain, Open>();
  /** The state that queries outside the open transactions see. */
  readonly #committed = new Map<Domain, Tables | ControlTables>();

  constructor(scheduler: Scheduler, controls: ControlTables, onRow?: OnRow) {
    this.tables = new Tables(onRow);
    this.controls = controls;
    this.#scheduler = scheduler;
    this.#answers = controlAnswers(() => scheduler.nowMs);
    scheduler.addSource(() => this.#choices());
  }

  pool(owner: Owner): Pool {
    const query: Queryable['query'] = (statement, values) =>
      this.#query(owner, null, statement, values) as never;
    return {
      query,
      transaction: (work) => this.#transaction(owner, work),
      batch: (calls, last) => this.#batch(owner, last === undefined ? calls : [...calls, last('')]) as never,
      recheck: async () => undefined,
      retries: () => 0,
      stats: () => ({ busy: 0, idle: 0, waiting: 0 }),
      close: async () => undefined,
    };
  }

  /** Rolls back the open transactions of a dead process. */
  forget(owner: Owner): void {
    this.#waiting = this.#waiting.filter((each) => each.owner !== owner);
    this.#answered = this.#answered.filter((each) => each.owner !== owner);
    for (const open of this.#open.values()) if (open.owner === owner) open.rollBack();
  }

  /** Runs a statement on the given tables of its domain. */
  #run({ statement, values }: Call, tables: Tables, controls: ControlTables): object[] {
    const named = statements.get(statement.name);
    if (named) return named(tables, values);
    const text = plainText(statement);
    for (const [pattern, run] of queries) if (pattern.test(text)) return run(tables, values);
    for (const [pattern, answer] of this.#answers) if (pattern.test(text)) return answer(values, controls);
    if (idle.test(statement.name)) return [];
    if (absent.test(statement.name)) throw lost();
    throw new Error(`the simulated Postgres does not know ${statement.name}: ${statement.text}`);
  }

  #domainOf({ statement }: Call): Domain {
    if (statements.has(statement.name)) return 'flushed';
    const text = plainText(statement);
    return this.#answers.some(([pattern]) => pattern.test(text)) ? 'control' : 'flushed';
  }

  #choices(): Choice[] {
    const answers = this.#answered
      .filter(({ owner, atMs }) => !owner.frozen && !this.#isLate(owner) && this.#isDue(atMs))
      .map((answer) => ({
        what: () => `${answer.owner.name}: gets an answer of Postgres`,
        run: () => {
          this.#answered = this.#answered.filter((each) => each !== answer);
          answer.deliver();
        },
      }));
    const runs = this.#waiting
      .filter(
        ({ owner, atMs }) => this.#scheduler.nowMs >= (this.lateUntilMs.get(owner) ?? 0) && this.#isDue(atMs),
      )
      .filter(({ owner, domain, transaction }) => {
        if (!owner.alive || owner.frozen) return false;
        const open = domain && this.#open.get(domain);
        return !open || open === transaction;
      })
      .map((waiting) => ({
        what: () => `${waiting.owner.name}: Postgres ${waiting.what}`,
        run: () => {
          this.#waiting = this.#waiting.filter((each) => each !== waiting);
          waiting.run();
        },
      }));
    return [...runs, ...answers];
  }

  #isLate = (owner: Owner) => this.#scheduler.nowMs < (this.answersLateUntilMs.get(owner) ?? 0);

  #drawDue(): number {
    const { random, nowMs } = this.#scheduler;
    return random.chance(this.slow) ? nowMs + random.int(0, 6_000) : 0;
  }

  #isDue = (atMs: number) => this.slow === 0 || this.#scheduler.nowMs >= atMs;

  /** Delivers an answer immediately, or in a later step. */
  #answer(owner: Owner, deliver: () => void): void {
    const atMs = this.#drawDue();
    if (this.#isLate(owner) || owner.frozen || atMs > 0 || this.#scheduler.random.chance(0.3))
      this.#answered.push({ owner, atMs, deliver });
    else deliver();
  }

  #ask<T>(
    owner: Owner,
    what: string,
    run: () => T,
    domain: Domain | null = null,
    transaction: Open | null = null,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const attempt = () => {
        if (this.#scheduler.nowMs < this.awayUntilMs) return reject(lost());
        try {
          const found = run();
          this.#answer(owner, () => resolve(found));
        } catch (error) {
          this.#answer(owner, () => reject(error));
        }
      };
      if (owner.alive)
        this.#waiting.push({ owner, what, run: attempt, domain, transaction, atMs: this.#drawDue() });
    });
  }

  async #query(
    owner: Owner,
    transaction: Open | null,
    statement: Statement,
    values: readonly unknown[] = [],
  ): Promise<Result<object>> {
    const call = { statement, values };
    const name = statements.has(statement.name) ? statement.name : 'query';
    const domain = transaction && this.#domainOf(call);
    const run = () => {
      if (this.fault() === 'refused') throw lost();
      if (transaction && domain) this.#begin(transaction, domain);
      const [tables, controls] = transaction
        ? [this.tables, this.controls]
        : [this.#committed.get('flushed') ?? this.tables, this.#committed.get('control') ?? this.controls];
      const rows = this.#run(call, tables as Tables, controls as ControlTables);
      return { rows, count: rows.length };
    };
    return this.#ask(owner, name, run, domain, transaction);
  }

  #begin(transaction: Open, domain: Domain): void {
    if (this.#open.get(domain) === transaction) return;
    const [tables, controls] = [this.tables, this.controls];
    const end = transaction.rollBack;
    this.#open.set(domain, transaction);
    this.#committed.set(domain, domain === 'control' ? controls : tables);
    if (domain === 'control') this.controls = controls.copy();
    else this.tables = tables.copy();
    transaction.rollBack = () => {
      end();
      if (domain === 'control') this.controls = controls;
      else this.tables = tables;
      this.#close(transaction);
    };
  }

  #close(transaction: Open): void {
    for (const [domain, open] of this.#open)
      if (open === transaction) {
        this.#open.delete(domain);
        this.#committed.delete(domain);
      }
  }

  #batch(owner: Owner, calls: readonly Call[]): Promise<object[]> {
    const run = () => {
      const fault = this.fault();
      if (fault === 'refused') throw lost();
      const tables = this.tables.copy();
      let rows: object[] = [];
      try {
        for (const call of calls) rows = this.#run(call, tables, this.controls);
      } catch (error) {
        this.transactions.push({ calls, rows: [], refused: (error as { code?: string }).code });
        throw error;
      }
      this.tables = tables;
      this.transactions.push({ calls, rows });
      if (fault === 'unanswered') throw lost();
      return rows;
    };
    return this.#ask(owner, `batch of ${calls.length}`, run, 'flushed');
  }

  async #transaction<T>(owner: Owner, work: (tx: Transaction) => Promise<T>): Promise<T> {
    const open: Open = { owner, rollBack: () => undefined };
    const calls: Call[] = [];
    let rows: object[] = [];
    const query: Queryable['query'] = async (statement, values = []) => {
      calls.push({ statement, values });
      const result = await this.#query(owner, open, statement, values);
      rows = result.rows;
      return result as never;
    };
    try {
      const result = await work({ query, server: '' });
      await this.#ask(owner, 'commit', () => {
        const fault = this.fault();
        if (fault === 'refused') throw lost();
        this.#close(open);
        if (calls.some((call) => this.#domainOf(call) === 'flushed')) this.transactions.push({ calls, rows });
        if (fault === 'unanswered') throw lost();
      });
      return result;
    } catch (error) {
      if ([...this.#open.values()].includes(open)) open.rollBack();
      throw error;
    }
  }
}

/** Runs one simulated installation from a seed: clients, faults, the end without faults, and the checks. */
import { deliveryLimits } from '../../src/delivery/limits.js';
import { ApiError } from '../../src/errors.js';
import { unpackMessage } from '../../src/store/core/codec.js';
import { isDirect, makeKeys } from '../../src/store/core/keys.js';
import type { Store } from '../../src/store/store.js';
import { BotOwners } from './bot_owners.js';
import { type Ask, Call, isUnknown, OpenCalls } from './calls.js';
import { type Conditions, drawConditions } from './conditions.js';
import { firstControlTables } from './control_tables.js';
import { Marks } from './marks.js';
import { Oracle, type Sent, type Verdicts } from './oracle.js';
import { botSender, bots, newMessage, partitions, secrets, userSender, users } from './people.js';
import { SimulatedPostgres } from './postgres.js';
import { Network, type Role, SimulatedProcess, type World } from './process.js';
import { type Leases, Receivers } from './receivers.js';
import { type SharedRedis, SimulatedRedis } from './redis.js';
import { Scheduler } from './scheduler.js';
import { SeededRandom } from './seeded_random.js';

export interface Options {
  readonly seed: number;
  /**
   * The number of steps with clients and faults. After these steps, the run continues until the installation is idle.
   */
  readonly steps: number;
  readonly redis: SharedRedis;
  /** The number of this installation in the shared Redis. Runs at the same time have different numbers. */
  readonly place?: number;
  /** The numbers of the faults to omit. This shows which faults are needed to reproduce a failure. */
  readonly omitted?: ReadonlySet<number>;
  /** The focus of this run, a key of `focuses`. If absent, the seed decides. */
  readonly focus?: string | undefined;
}

export interface Report {
  readonly steps: number;
  readonly faults: readonly string[];
  /** The violation that was found, or null. */
  readonly violation: string | null;
  readonly trace: readonly string[];
  readonly sent: number;
  /** The histories that were checked. */
  readonly messages: Verdicts;
  readonly marks: Verdicts;
  readonly transactions: SimulatedPostgres['transactions'];
  readonly tables: SimulatedPostgres['tables'];
}

class Violation extends Error {}

const nothing: Verdicts = { histories: 0, calls: 0, undecided: 0 };

const layout: ReadonlyArray<readonly Role[]> = [
  ['front', 'deliver'],
  ['front', 'deliver', 'flush'],
  ['flush'],
];
/** How many steps the installation may need to become idle. */
const restSteps = 60_000;
/**
 * The number of steps between two checks of whether the installation is idle. The installation counts as idle after two
 * positive checks in a row.
 */
const restCheckSteps = 50;
const clientsMax = 10;
/** The number of steps after which the owner of a bot gives up a call. */
const ownersPatience = 3_000;
const traceMax = 400;
/** The kinds of journal entries whose key begins with the partition. Keys of other kinds begin with a chat or a bot. */
const postKinds = new Set(['post', 'react', 'tally']);
const leaseMs = deliveryLimits.webhook_lease_ms;

class Simulation {
  readonly #options: Options;
  readonly #random: SeededRandom;
  readonly #faultRandom: SeededRandom;
  readonly #conditions: Conditions;
  readonly #scheduler: Scheduler;
  readonly #world: World;
  readonly #receivers: Receivers;
  readonly #oracle: Oracle;
  readonly #owners: BotOwners;
  readonly #marks: Marks;
  readonly #openCalls: OpenCalls;
  #checked = { messages: nothing, marks: nothing };
  readonly #processes: SimulatedProcess[] = [];
  readonly faults: string[] = [];
  violation: string | null = null;
  #faultCount = 0;
  /** How many faults of the current series are still to come. */
  #series = 0;
  #running = 0;
  #texts = 0;
  #target: Sent | undefined;
  #syncedAt = 0;
  #lostAt = Number.NEGATIVE_INFINITY;
  #jumpedAt = Number.NEGATIVE_INFINITY;
  readonly #leases: Leases = {
    mayOverlap: () => this.#scheduler.nowMs < Math.max(this.#lostAt, this.#jumpedAt) + 2 * leaseMs,
    areLost: () => this.#scheduler.nowMs < this.#lostAt + leaseMs,
  };
  readonly #frozen = new Set<{
    readonly process: SimulatedProcess;
    readonly untilMs: number;
    readonly untilStep: number;
  }>();
  #started = 0;
  #images = new Map<string, string>();

  constructor(options: Options) {
    const { seed, redis: shared, place = 0 } = options;
    this.#options = options;
    this.#random = new SeededRandom(seed);
    this.#faultRandom = new SeededRandom(seed + 0x51ed270b);
    this.#conditions = drawConditions(seed, options.focus);
    const { impatience, hintsLost, hotTtlMs, slowAnswers } = this.#conditions;
    const scheduler = new Scheduler(this.#random, impatience, traceMax);
    this.#scheduler = scheduler;
    const { scripts } = shared;
    const network = new Network(scheduler, hintsLost);
    const redis = new SimulatedRedis(shared, place, scheduler, (...hint) => network.hint(...hint));
    const postgres = new SimulatedPostgres(scheduler, firstControlTables(secrets), (...row) =>
      this.#noteRow(...row),
    );
    const keys = makeKeys(partitions);
    const onError = (error: unknown) => {
      if (error instanceof ApiError || (error as NodeJS.ErrnoException).code === 'ECONNRESET') return;
      if (/Connection is closed|incarnation/.test(String(error))) return;
      this.#violate(`unexpected error: ${(error as Error).stack}`);
    };
    this.#world = { scheduler, redis, postgres, scripts, keys, secrets, network, hotTtlMs, onError };
    const violate = (what: string) => this.#violate(what);
    this.#receivers = new Receivers(network, scheduler, slowAnswers, this.#leases, violate);
    this.#oracle = new Oracle(scheduler, violate);
    redis.lateMsMax = this.#conditions.lateMsMax;
    redis.onPolled = (bot) => this.#receivers.pollRan(bot);
    this.#openCalls = new OpenCalls(scheduler, redis);
    const ask: Ask = (call, work) => this.#retried(call, work);
    this.#marks = new Marks(scheduler, this.#conditions, ask, this.#openCalls, violate);
    this.#owners = new BotOwners(scheduler, this.#receivers, (...args) => this.#answered(...args), violate);
  }

  async run(): Promise<Report> {
    const { redis, postgres } = this.#world;
    const scheduler = this.#scheduler;
    // As in production, a ticket lives half as long as a flushed record stays in Redis.
    await redis.open(this.#conditions.hotTtlMs / 2);
    for (const roles of layout) this.#start(roles);
    postgres.slow = this.#conditions.slowPostgres;
    postgres.fault = () => {
      const drawn = this.#faultRandom.number();
      return drawn < 0.02 ? 'refused' : drawn < 0.04 ? 'unanswered' : 'none';
    };
    try {
      while (scheduler.steps < this.#options.steps && this.violation === null) {
        await this.#disturb();
        this.#tend();
        if (this.#running < clientsMax && this.#random.chance(this.#conditions.calls)) this.#call();
        await scheduler.step();
      }
      if (this.violation === null) await this.#rest();
    } catch (error) {
      this.violation ??= (error as Error).stack ?? String(error);
    }
    for (const each of this.#processes) if (each.alive) await each.crash();
    return {
      ...{ steps: scheduler.steps, faults: this.faults, violation: this.violation },
      trace: scheduler.trace(),
      ...{ sent: this.#oracle.sent.size, ...this.#checked },
      ...{ transactions: postgres.transactions, tables: postgres.tables },
    };
  }

  #violate(what: string): void {
    this.violation ??= what;
  }

  #start(roles: readonly Role[]): void {
    const drift = this.#random.int(-500, 500);
    const name = `${roles.map((role) => role[0]).join('')}${++this.#started}`;
    const made = new SimulatedProcess(this.#world, name, roles, drift);
    this.#processes.push(made);
  }

  /**
   * Records the entity and the content that a version belongs to. Within a partition, a version must never belong to
   * another entity or another content.
   */
  #noteRow(kind: string, key: readonly number[], version: number, record: Buffer | null): void {
    const entity = `${kind}:${key.join(':')}`;
    const image = `${entity} ${record?.toString('latin1') ?? ''}`;
    const [first = 0] = key;
    const partition = postKinds.has(kind) ? first : this.#world.keys.partitions.of(first);
    const place = `${partition} ${version}`;
    const known = this.#images.get(place);
    if (known !== undefined && known !== image)
      this.#violate(`version ${version} belongs to ${known.split(' ', 1)} and to ${entity}`);
    this.#images.set(place, image);
  }

  // Faults.

  async #disturb(): Promise<void> {
    const random = this.#faultRandom;
    if (random.chance(this.#conditions.syncs)) await this.#sync();
    const inSeries = this.#series > 0;
    if (!random.chance(inSeries ? 0.05 : this.#conditions.faults)) return;
    if (inSeries) this.#series--;
    else if (random.chance(0.4)) this.#series = random.int(1, 4);
    const kinds = this.#allowedFaults;
    if (kinds.length === 0) return;
    const [name, cause] = random.pick(kinds);
    const fate = new SeededRandom(random.int(0, 2 ** 31));
    const number = this.#faultCount++;
    if (this.#options.omitted?.has(number)) return;
    const what = `fault ${number}: ${name}`;
    this.faults.push(`${this.#scheduler.steps} ${what}`);
    this.#scheduler.note(what);
    await cause(fate);
    await this.#scheduler.settle();
  }

  readonly #faultKinds: Readonly<Record<string, (random: SeededRandom) => Promise<void> | void>> = {
    'a process dies': async (random) => {
      const alive = this.#processes.filter((each) => each.alive);
      const dying = random.pick(alive);
      await dying.crash();
      this.#processes.splice(this.#processes.indexOf(dying), 1);
      this.#start(dying.roles);
    },
    'a process freezes': (random) => {
      const chosen = random.pick(this.#processes);
      if (chosen.frozen) return;
      chosen.frozen = true;
      this.#world.network.taint(chosen);
      this.#frozen.add({
        process: chosen,
        untilMs: this.#scheduler.nowMs + random.int(10, 15_000),
        untilStep: this.#scheduler.steps + random.int(20, 600),
      });
    },
    'a connection to Redis breaks': (random) => random.pick(this.#processes).connection.cut('some'),
    'a process cannot reach Redis': (random) => {
      const { connection } = random.pick(this.#processes);
      connection.cut('some');
      connection.awayUntilMs = this.#scheduler.nowMs + random.int(500, 12_000);
    },
    'Redis answers late': (random) => {
      const untilMs = this.#scheduler.nowMs + random.int(10, this.#conditions.lateMsMax);
      random.pick(this.#processes).connection.lateUntilMs = untilMs;
    },
    'commands reach Redis late': (random) => {
      const untilMs = this.#scheduler.nowMs + random.int(10, this.#conditions.lateMsMax);
      random.pick(this.#processes).connection.commandsLateUntilMs = untilMs;
    },
    'Redis syncs': () => this.#sync(),
    'Redis restarts with all data': () => this.#world.redis.restart(false),
    'Redis fails over and loses its tail': async () => {
      this.#lostAt = this.#scheduler.nowMs;
      this.#oracle.lose(this.#syncedAt, this.#scheduler.steps);
      this.#marks.lose(this.#syncedAt, this.#scheduler.steps);
      this.#receivers.forgive();
      await this.#world.redis.restart(true);
      this.#syncedAt = this.#scheduler.steps;
    },
    'the clock of Redis jumps': (random) => {
      this.#jumpedAt = this.#scheduler.nowMs;
      this.#world.redis.skewMs += random.int(-3_000, 8_000);
    },
    'Postgres is away': (random) => {
      this.#world.postgres.awayUntilMs = this.#scheduler.nowMs + random.int(10, 20_000);
    },
    'statements reach Postgres late': (random) => {
      const untilMs = this.#scheduler.nowMs + random.int(10, 8_000);
      this.#world.postgres.lateUntilMs.set(random.pick(this.#processes), untilMs);
    },
    'Postgres answers late': (random) => {
      const untilMs = this.#scheduler.nowMs + random.int(10, 8_000);
      this.#world.postgres.answersLateUntilMs.set(random.pick(this.#processes), untilMs);
    },
  };
  get #allowedFaults() {
    return Object.entries(this.#faultKinds).filter(([name]) => this.#conditions.allows(name));
  }

  async #sync(): Promise<void> {
    await this.#world.redis.sync();
    this.#syncedAt = this.#scheduler.steps;
  }

  // Clients.

  #call(): void {
    const fronts = this.#processes.filter(({ roles, frozen }) => roles.includes('front') && !frozen);
    if (fronts.length === 0) return;
    const known = [...this.#oracle.sent.values()].slice(-8);
    // Often reuses the message of the previous call, so that calls about one message overlap.
    if (known.length > 0 && this.#random.chance(0.5)) this.#target = this.#random.pick(known);
    const target = this.#target ?? known[0];
    const drawn = this.#random.number();
    const front = this.#random.pick(fronts);
    this.#running++;
    const ended = () => {
      this.#running--;
    };
    const { marks, owners } = this.#conditions;
    const work =
      marks > 0 && this.#random.chance(marks)
        ? this.#marks.call(target)
        : this.#random.chance(owners)
          ? this.#ownerCall(front, this.#random.pick(bots))
          : this.#messageCall(target, drawn);
    work.catch((error) => this.#violate(`client: ${(error as Error).stack}`)).finally(ended);
  }

  #messageCall(target: Sent | undefined, drawn: number): Promise<void> {
    if (target === undefined || drawn < this.#conditions.sends) return this.#send();
    if (drawn < 0.7) return this.#write(target, false);
    return drawn < 0.7 + this.#conditions.deletes ? this.#write(target, true) : this.#read(target);
  }

  /** Calls fronts until one of them answers. Returns undefined if the outcome is unknown. */
  async #retried<T>(
    call: Call,
    work: (front: SimulatedProcess, again: boolean) => Promise<T>,
  ): Promise<T | undefined> {
    for (let attempt = 0; attempt < 3; attempt++) {
      const fronts = this.#processes.filter(({ roles }) => roles.includes('front'));
      if (fronts.length === 0) return undefined;
      const front = this.#random.pick(fronts);
      const answer = await this.#answered(
        front,
        () => {
          const made = work(front, attempt > 0);
          call.add(front, made);
          return made;
        },
        this.#conditions.patience,
      );
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  /** Returns undefined if the outcome is unknown. */
  #answered<T>(
    front: SimulatedProcess,
    work: () => Promise<T>,
    patience = ownersPatience,
  ): Promise<T | undefined> {
    const known = work().catch((error) => {
      if (isUnknown(error)) return undefined;
      throw error;
    });
    return Promise.race([known, this.#gone(front, patience)]);
  }

  #ownerCall(front: SimulatedProcess, bot: number): Promise<void> {
    const drawn = this.#random.number();
    const polls = this.#owners.polling.includes(bot);
    if (this.#random.chance(this.#conditions.tokens))
      return drawn < 0.15 ? this.#owners.replaceToken(front, bot) : this.#owners.checkToken(front, bot);
    if (polls && drawn < 0.8) return this.#owners.poll(front, bot);
    return polls || drawn < 0.5
      ? this.#owners.setWebhook(front, bot)
      : this.#owners.deleteWebhook(front, bot);
  }

  /** The calls whose answers clients wait for. A client gives up when its front is dead, or after a number of steps. */
  readonly #waiting = new Set<{ readonly front: SimulatedProcess; readonly atStep: number; end(): void }>();
  #gone(front: SimulatedProcess, patience: number): Promise<undefined> {
    return new Promise((resolve) => {
      const waiting = {
        front,
        atStep: this.#scheduler.steps + patience,
        end: () => resolve(undefined),
      };
      this.#waiting.add(waiting);
    });
  }

  async #send(): Promise<void> {
    const random = this.#random;
    const text = `t${++this.#texts}`;
    const chat = random.pick(this.#conditions.chats);
    const byBot = isDirect(chat) && random.chance(0.4);
    const sender = byBot ? botSender(chat.id) : userSender(isDirect(chat) ? chat.user : random.pick(users));
    const seed = `send${this.#texts}`;
    const durable = random.chance(this.#conditions.durable);
    const from = this.#scheduler.steps;
    const sent = await this.#retried(new Call(), (front, again) => {
      const own = front.store.under(seed, again);
      const send = (store: Store) => store.messages.send(chat, sender, newMessage(text));
      if (!durable) return send(own);
      return own.durability.run(
        { account: sender.id, onGone: () => undefined },
        (changes) => send(own.noting(changes)),
        () => text.length,
      );
    });
    if (sent === undefined) return;
    const until = this.#scheduler.steps;
    this.#oracle.noteSent({ chat, id: sent.id, text, from, until, byBot, durable });
  }

  async #write({ chat, id, text: first, byBot }: Sent, deletes: boolean): Promise<void> {
    const key = Oracle.key(chat, id);
    const text = deletes ? '' : `${first}.${++this.#texts}`;
    const seed = `write${++this.#texts}`;
    const sender = byBot ? botSender(chat.id) : userSender(isDirect(chat) ? chat.user : users[0]);
    const from = this.#scheduler.steps;
    let refused = false;
    const call = new Call();
    const done = await this.#retried(call, async (front, again) => {
      const { messages } = front.store.under(seed, again);
      try {
        if (deletes) await messages.remove(chat, sender, id);
        else await messages.edit(chat, sender, id, { what: 'text', content: { text }, markup: null });
      } catch (error) {
        if (!(error instanceof ApiError) || isUnknown(error)) throw error;
        refused = true;
      }
      return true as const;
    });
    // Treats the outcome as unknown, because an earlier attempt may have succeeded and caused this refusal.
    const output = done && !refused ? 'done' : null;
    const closed = [this.#oracle.messages.note(key, seed, { what: 'write', text }, output, from)];
    if (deletes) closed.push(this.#marks.deleted(chat, id, output, from));
    if (output === null) for (const each of closed) this.#openCalls.add(call, each);
  }

  async #read({ chat, id }: Sent): Promise<void> {
    const key = Oracle.key(chat, id);
    const from = this.#scheduler.steps;
    const row = this.#world.postgres.tables.of('messages').get(`${chat.id}:${chat.user}:${id}`);
    const found = await this.#retried(
      new Call(),
      async (front) => (await front.store.history.list(chat, id + 1, 1)) ?? [],
    );
    if (found === undefined) return;
    const message = found.find((each) => each.id === id);
    const read = message?.record.content.text ?? '';
    const version = message?.record.version ?? Number.POSITIVE_INFINITY;
    if (row && version < row.version)
      this.#violate(`message ${key} was read in version ${version}, and Postgres had ${row.version}`);
    this.#oracle.messages.note(key, `read${from}`, { what: 'read' }, { text: read }, from);
  }

  async #rest(): Promise<void> {
    const { postgres } = this.#world;
    const scheduler = this.#scheduler;
    scheduler.note('no more faults');
    postgres.fault = () => 'none';
    postgres.slow = 0;
    postgres.awayUntilMs = 0;
    postgres.lateUntilMs.clear();
    postgres.answersLateUntilMs.clear();
    this.#receivers.healthy = true;
    for (const each of this.#processes) {
      each.frozen = false;
      each.connection.lateUntilMs = 0;
      each.connection.commandsLateUntilMs = 0;
      each.connection.awayUntilMs = 0;
    }
    const end = scheduler.steps + restSteps;
    for (let quiet = 0; quiet < 2; ) {
      for (let i = 0; i < restCheckSteps; i++) {
        this.#tend();
        await scheduler.step();
      }
      if (this.violation !== null) return;
      const left = await this.#unfinished();
      const [front] = this.#processes.filter(({ roles }) => roles.includes('front'));
      for (const bot of this.#owners.polling) {
        left.push(`webhook of bot ${bot}`);
        if (front) void this.#owners.setWebhook(front, bot);
      }
      quiet = left.length === 0 ? quiet + 1 : 0;
      if (scheduler.steps > end) throw new Violation(`did not come to rest: ${left.join(', ')}`);
    }
    this.#finalChecks();
  }

  /** Returns the work that the installation has not finished. */
  async #unfinished(): Promise<string[]> {
    const { redis, keys, network } = this.#world;
    const streams = new Map<string, string>();
    for (let partition = 0; partition < partitions; partition++) {
      streams.set(`journal ${partition}`, keys.journal(partition));
      streams.set(`outbox ${partition}`, keys.outbox(partition));
    }
    for (const bot of bots) streams.set(`queue of bot ${bot}`, keys.queue(bot));
    const lengths = await redis.lengths([...streams.values()]);
    const counts: Array<readonly [string, number]> = [
      ['calls', this.#running],
      ['calls with an unknown outcome', this.#openCalls.size],
      ['commands of lost connections', redis.receivedCount],
      ['requests to receivers', network.requests.length],
      ...[...streams.keys()].map((name, i) => [name, lengths[i] ?? 0] as const),
    ];
    return counts.filter(([, count]) => count > 0).map(([name, count]) => `${name}: ${count}`);
  }

  /** Ends all waits of clients, and lets frozen processes run again. */
  #tend(): void {
    this.#openCalls.check();
    const { steps, nowMs } = this.#scheduler;
    for (const waiting of this.#waiting)
      if (!waiting.front.alive || steps > waiting.atStep) {
        this.#waiting.delete(waiting);
        waiting.end();
      }
    for (const frozen of this.#frozen)
      if (nowMs >= frozen.untilMs || steps >= frozen.untilStep) {
        this.#frozen.delete(frozen);
        frozen.process.frozen = false;
      }
  }

  #finalChecks(): void {
    const { tables } = this.#world.postgres;
    const step = this.#scheduler.steps;
    for (const [key, { chat, id, text, byBot, durable }] of this.#oracle.sent) {
      const row = tables.of('messages').get(`${chat.id}:${chat.user}:${id}`);
      const record = row?.record ? unpackMessage(row.record) : null;
      if (!row && (durable || !this.#oracle.messages.loose.has(key)))
        this.#violate(`${durable ? 'durable ' : ''}message ${key} (${text}) is not in Postgres`);
      if (row)
        this.#oracle.messages.note(
          key,
          'postgres',
          { what: 'read' },
          { text: record?.content.text ?? '' },
          step,
        );
      if (byBot || this.#oracle.messages.loose.has(key)) continue;
      for (const bot of isDirect(chat) ? [chat.id] : bots)
        if (!this.#receivers.accepted.get(bot)?.has(text))
          this.#violate(`bot ${bot} did not get message ${key} (${text})`);
    }
    const messages = this.#oracle.verify();
    this.#checked = { messages, marks: this.#marks.verify(tables, this.#conditions.chats) };
  }
}

export const simulate = (options: Options): Promise<Report> => new Simulation(options).run();

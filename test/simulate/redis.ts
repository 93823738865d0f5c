/**
 * A real Redis under the control of the scheduler. Redis runs one command at a time, so the scheduler decides the
 * order. The clock of Redis and the expiry of its keys follow the simulated time. Redis can restart with all its data,
 * or with the data of an earlier moment.
 */
import { createHash } from 'node:crypto';
import { Command, type Redis } from 'ioredis';
import type { RedisConnection, RedisServers } from '../../src/redis/connection.js';
import type { CombinedForm, Script, Source } from '../../src/redis/scripts/contract.js';
import { ScriptCommand } from '../../src/redis/scripts/script_command.js';
import { createWaiting } from '../../src/redis/waiting.js';
import type { Choice, Owner, ProcessTime, Scheduler } from './scheduler.js';

const startSeconds = 1_800_000_000;

/**
 * Replaces `redis` in a script, so that the script uses simulated time. The key `sim:now` contains the time, the set
 * `sim:ttl` contains the times to live, and the list `sim:hints` collects hints. The key `sim:ticket_ms` contains the
 * time to live of fill tickets. The shim recognises the key of a fill ticket by the option GET of SET, which no other
 * key uses.
 */
const shim = `
local real=redis
local function due(key) return tonumber(real.call('ZSCORE','sim:ttl',key) or nil) end
local function at_now() return tonumber(real.call('GET','sim:now')) end
local redis=setmetatable({call=function(name,...)
  local a={...}
  if name=='TIME' then local n=at_now() return {('%.0f'):format(math.floor(n/1000)),('%.0f'):format(n%1000*1000)} end
  if name=='PUBLISH' or name=='SPUBLISH' then real.call('RPUSH','sim:hints',a[1],a[2]) return 0 end
  if name=='PERSIST' then return real.call('ZREM','sim:ttl',a[1]) end
  if name=='PTTL' then
    if real.call('EXISTS',a[1])==0 then return -2 end
    local d=due(a[1]) return d and d-at_now() or -1 end
  if name=='PEXPIRE' then
    if real.call('EXISTS',a[1])==0 then return 0 end
    local d,to=due(a[1]),at_now()+a[2]
    if a[3]=='NX' and d or a[3]=='XX' and not d or a[3]=='GT' and (not d or to<=d) then return 0 end
    real.call('ZADD','sim:ttl',to,a[1]) return 1 end
  if name=='SET' then
    local ttl,only,ticket,rest=nil,false,false,{}
    local i=1
    while i<=#a do
      if i>2 and a[i]=='PX' then ttl=a[i+1] i=i+1 else
        if i>2 and a[i]=='NX' then only=true end
        if i>2 and a[i]=='GET' then ticket=true end
        rest[#rest+1]=a[i] end
      i=i+1 end
    if ticket then ttl=tonumber(real.call('GET','sim:ticket_ms')) end
    local had=only and real.call('EXISTS',a[1])==1
    local reply=real.call('SET',unpack(rest))
    if not had then
      if ttl then real.call('ZADD','sim:ttl',at_now()+ttl,a[1]) else real.call('ZREM','sim:ttl',a[1]) end end
    return reply end
  if name=='DEL' or name=='UNLINK' then real.call('ZREM','sim:ttl',...) end
  return real.call(name,...)
end},{__index=real})`.replace(/\n\s*/g, ' ');

const tickScript = `redis.call('SET','sim:now',ARGV[1])
local gone=redis.call('ZRANGEBYSCORE','sim:ttl','-inf',ARGV[1])
for _,key in ipairs(gone) do redis.call('DEL',key) redis.call('ZREM','sim:ttl',key) end return #gone`;

const syncScript = `redis.call('SELECT',ARGV[2]) redis.call('FLUSHDB') redis.call('SELECT',ARGV[1])
for _,key in ipairs(redis.call('KEYS','*')) do redis.call('COPY',key,key,'DB',ARGV[2]) end`;

function shimmed<S extends Source>(source: S): S {
  const text = source.source.replace('\n', () => `\n${shim} `);
  return { ...source, source: text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Returns the scripts with the simulated clock. */
export const simulatedScripts = (scripts: ReadonlyMap<string, Script>): Map<string, Script> =>
  new Map(
    [...scripts].map(([name, script]) => [
      name,
      { ...shimmed(script), combined: script.combined && shimmed<CombinedForm>(script.combined) },
    ]),
  );

/**
 * A real Redis that several simulated installations share. Each installation has a number, called its place, and two
 * databases: one for its data, and one for a copy of the data.
 */
export class SharedRedis {
  readonly #client: Redis;
  readonly scripts: ReadonlyMap<string, Script>;
  #loaded: Promise<unknown> | undefined;
  #database = 0;
  #isCorked = false;

  /** `scripts` is the result of `simulatedScripts`. */
  constructor(client: Redis, scripts: ReadonlyMap<string, Script>) {
    this.#client = client;
    this.scripts = scripts;
  }

  /** Loads the scripts only once, because FLUSHDB does not remove them. */
  load(): Promise<unknown> {
    const sources = [...this.scripts.values()].flatMap(({ source, combined }) =>
      [source, combined?.source ?? []].flat(),
    );
    this.#loaded ??= Promise.all(sources.map((source) => this.#client.script('LOAD', source)));
    return this.#loaded;
  }

  /**
   * Sends commands to a database. All commands that are sent in one turn of the event loop share one write to the
   * socket, because separate writes would double the time of a step.
   */
  send<T>(database: number, commands: (client: Redis) => T): T {
    const { stream } = this.#client;
    if (!this.#isCorked) {
      this.#isCorked = true;
      stream.cork();
      setImmediate(() => {
        this.#isCorked = false;
        stream.uncork();
      });
    }
    if (database !== this.#database) void this.#client.select(database);
    this.#database = database;
    return commands(this.#client);
  }
}

/** An upper bound on the number of hints and channels that a script can use. */
const hintsMax = 1_000_000;

export type OnHint = (channel: string, hint: Buffer) => void;

export class SimulatedRedis {
  readonly #shared: SharedRedis;
  readonly #database: number;
  readonly #scheduler: Scheduler;
  readonly #onHint: OnHint;
  #runs = 1;
  #tickedAt = -1;
  /** How far the clock of Redis is ahead of the time of the scheduler, in ms. */
  skewMs = 0;
  /**
   * The maximum delay, in ms, of commands on a slow connection. For a lost connection, the maximum delay is half as
   * long.
   */
  lateMsMax = 6_000;
  readonly connections = new Set<SimulatedConnection>();
  /** Called when Redis has run a poll that returns updates. The client may get them later. */
  onPolled: (bot: number) => void = () => undefined;
  /** The commands that Redis received over lost connections. Redis runs them after `atMs`. */
  #received: Array<{ readonly atMs: number; readonly step: number; from: string; commands: Command[] }> = [];

  constructor(shared: SharedRedis, place: number, scheduler: Scheduler, onHint: OnHint) {
    this.#shared = shared;
    this.#database = 2 * place;
    this.#scheduler = scheduler;
    this.#onHint = onHint;
    scheduler.addSource(() => {
      const found: Choice[] = [];
      for (const each of this.connections) found.push(...each.choices());
      return found;
    });
    scheduler.addSource(() => this.#receivedChoices());
  }

  /**
   * Commands that Redis received over a connection that was then lost. Redis runs them later, in order. `step` is the
   * step in which the first of them was sent.
   */
  receive(from: string, commands: Command[], step: number): void {
    const atMs = this.#scheduler.nowMs + this.#scheduler.random.int(0, this.lateMsMax / 2);
    if (commands.length > 0) this.#received.push({ atMs, step, from, commands });
  }

  /**
   * Finds the oldest command that Redis may still run. Returns the step in which the command was sent, or Infinity if
   * there is none.
   */
  oldestStep(): number {
    const steps = [...this.connections].map((each) => each.oldestStep());
    return Math.min(...steps, ...this.#received.map(({ step }) => step));
  }

  /** The number of lost connections whose commands Redis has yet to run. */
  get receivedCount(): number {
    return this.#received.length;
  }

  #receivedChoices(): Choice[] {
    const { nowMs } = this.#scheduler;
    return this.#received
      .filter(({ atMs }) => nowMs >= atMs)
      .map(({ from, commands }) => ({
        what: () => `${from}, connection lost: ${nameOf(commands[0] as Command)}`,
        run: async () => {
          const command = commands.shift() as Command;
          this.#received = this.#received.filter((each) => each.commands.length > 0);
          await this.run(command).catch(() => undefined);
        },
      }));
  }

  get runId(): string {
    return `run-${this.#runs}`;
  }

  nowMs(): number {
    return startSeconds * 1_000 + Math.floor(this.#scheduler.nowMs + this.skewMs);
  }

  /** Removes all data and loads the scripts, so that the steps of a run do not depend on earlier runs. */
  async open(ticketMs: number): Promise<void> {
    await this.#shared.load();
    const emptied = this.#send((client) => [client.flushdb(), client.set('sim:ticket_ms', ticketMs)]);
    await Promise.all([...emptied, this.sync()]);
  }

  #send<T>(commands: (client: Redis) => T): T {
    return this.#shared.send(this.#database, commands);
  }

  /** Runs a command. Rejects with the error of Redis. */
  async run(command: Command): Promise<unknown> {
    const { name } = command;
    const now = this.nowMs();
    if (name === 'time') return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
    const { reply, hints } = this.#send((client) => {
      if (now !== this.#tickedAt) void client.eval(tickScript, 0, now);
      this.#tickedAt = now;
      return {
        reply:
          name === 'scan'
            ? client.keys('*').then(scanned)
            : (client.sendCommand(command) as Promise<unknown>),
        hints: command instanceof ScriptCommand ? client.lpopBuffer('sim:hints', hintsMax) : null,
      };
    });
    try {
      const answer = await reply;
      this.#notePoll(command, answer);
      return answer;
    } finally {
      const found = (await hints) ?? [];
      for (let i = 0; i < found.length; i += 2) this.#onHint(String(found[i]), found[i + 1] as Buffer);
    }
  }

  #notePoll({ args: [sha, ...args] }: Command, answer: unknown): void {
    if (sha !== this.#shared.scripts.get('updates/poll')?.sha) return;
    const [status, rows] = answer as [Buffer, readonly unknown[]];
    const [, bot] = /:queue_state:(\d+)/.exec(args.join(' ')) ?? [];
    if (String(status) === 'ok' && rows.length > 0) this.onPolled(Number(bot));
  }

  /** Stores a copy of the present data. A failover returns to this copy. */
  async sync(): Promise<void> {
    await this.#send((client) => client.eval(syncScript, 0, this.#database, this.#database + 1));
  }

  /** Restarts under a new run id. If `loses` is true, restarts with the data of the last `sync`. */
  async restart(loses: boolean): Promise<void> {
    this.#runs++;
    this.#received = [];
    for (const connection of this.connections) connection.cut('none');
    if (!loses) return;
    await this.#send((client) => client.swapdb(this.#database, this.#database + 1));
    this.#tickedAt = -1;
    await this.sync();
  }

  /** Returns the number of entries of each stream. */
  lengths(streams: readonly string[]): Promise<number[]> {
    return this.#send((client) => Promise.all(streams.map((stream) => client.xlen(stream))));
  }
}

/** The reply to a SCAN: all keys that the program stored. */
const scanned = (keys: string[]) => ['0', keys.filter((key) => !key.startsWith('sim:')).sort()];

interface Sent {
  readonly command: Command;
  readonly step: number;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Delivers the reply. Absent until Redis has run the command. */
  answer?: () => void;
}

const closed = () => new Error('Connection is closed.');

/**
 * The connection of one process. Redis runs the commands of the process in order, and the process receives the replies
 * in order.
 */
export class SimulatedConnection implements RedisServers {
  /**
   * True, so that the program polls each journal with a timer. For a single Redis server, the program would wait in a
   * blocking command on a separate connection.
   */
  readonly clustered = true;
  readonly client: unknown;
  readonly #owner: Owner;
  readonly #redis: SimulatedRedis;
  readonly #time: ProcessTime;
  readonly #scheduler: Scheduler;
  readonly #waiting: ReturnType<typeof createWaiting>;
  #runId: string | null = null;
  #sent: Sent[] = [];
  /** The process gets no reply before this time. */
  lateUntilMs = 0;
  /** No command reaches Redis before this time. */
  commandsLateUntilMs = 0;
  /** The process cannot connect before this time. */
  awayUntilMs = 0;

  constructor(owner: Owner, redis: SimulatedRedis, time: ProcessTime, scheduler: Scheduler) {
    this.#owner = owner;
    this.#redis = redis;
    this.#time = time;
    this.#scheduler = scheduler;
    this.#waiting = createWaiting(time);
    const send = (name: string, args: readonly unknown[], encoding: 'utf8' | null) =>
      this.send(new Command(name, args.map(String), { replyEncoding: encoding }));
    this.client = {
      xrangeBuffer: (...args: unknown[]) => send('xrange', args, null),
      scan: (...args: unknown[]) => send('scan', args, 'utf8'),
    };
    redis.connections.add(this);
  }

  at(): RedisConnection {
    return this as unknown as RedisConnection;
  }

  nodes(): readonly RedisConnection[] {
    return [this.at()];
  }

  redirect(): null {
    return null;
  }

  runId(): string | null {
    return this.#runId;
  }

  reachable(): boolean {
    return this.#runId !== null;
  }

  ready(msMax: number): Promise<void> {
    return this.#waiting.until(() => this.reachable(), msMax);
  }

  send(command: Command): Promise<unknown> {
    if (!this.#owner.alive) return new Promise(() => undefined);
    if (this.#runId === null) return Promise.reject(closed());
    const step = this.#scheduler.steps;
    return new Promise((resolve, reject) => this.#sent.push({ command, step, resolve, reject }));
  }

  /**
   * Finds the oldest command that Redis has not run. Returns the step in which the command was sent, or Infinity if
   * there is none.
   */
  oldestStep(): number {
    return this.#sent.find(({ answer }) => answer === undefined)?.step ?? Number.POSITIVE_INFINITY;
  }

  atTurnEnd(work: () => void): void {
    this.#scheduler.atTurnEnd(work);
  }

  async reread(): Promise<void> {
    const sent = this.#time.monotonic();
    const time = (await this.send(new Command('time', [])).catch(() => null)) as [string, string] | null;
    if (time !== null) this.#time.follow(time, sent, this.#time.monotonic());
  }

  async close(): Promise<void> {
    this.#redis.connections.delete(this);
  }

  /**
   * Cuts the connection. Replies in transit are lost. Redis receives either none of the commands in transit, or only
   * the first few.
   */
  cut(received: 'some' | 'none'): void {
    this.#runId = null;
    const lost = this.#sent;
    this.#sent = [];
    const unrun = lost.filter(({ answer }) => answer === undefined);
    const count = received === 'none' ? 0 : this.#scheduler.random.int(0, unrun.length + 1);
    const commands = unrun.slice(0, count).map(({ command }) => command);
    this.#redis.receive(this.#owner.name, commands, unrun[0]?.step ?? 0);
    if (this.#owner.alive) for (const { reject } of lost) reject(closed());
  }

  connect(): void {
    this.#runId = this.#redis.runId;
    void this.reread();
    this.#waiting.wake();
  }

  choices(): Choice[] {
    const { name, frozen, alive } = this.#owner;
    if (!alive) return [];
    const { nowMs } = this.#scheduler;
    if (this.#runId === null)
      return frozen || nowMs < this.awayUntilMs
        ? []
        : [{ what: () => `${name}: connects`, run: () => this.connect() }];
    const found: Choice[] = [];
    const first = this.#sent[0];
    const isLate = nowMs < this.lateUntilMs;
    if (first?.answer !== undefined && !frozen && !isLate)
      found.push({
        what: () => `${name}: gets the reply to ${nameOf(first.command)}`,
        run: () => this.#deliver(),
      });
    const next = this.#sent.find(({ answer }) => answer === undefined);
    if (next !== undefined && nowMs >= this.commandsLateUntilMs)
      found.push({ what: () => `${name}: ${nameOf(next.command)}`, run: () => this.#runNext(next) });
    return found;
  }

  #deliver(): void {
    this.#sent.shift()?.answer?.();
  }

  async #runNext(sent: Sent): Promise<void> {
    await this.#redis.run(sent.command).then(
      (reply) => {
        sent.answer = () => sent.resolve(reply);
      },
      (error) => {
        sent.answer = () => sent.reject(error);
      },
    );
    // Most replies arrive immediately. All other replies arrive in a later step, after other processes have continued.
    const isLate = this.#scheduler.nowMs < this.lateUntilMs;
    if (this.#sent[0] === sent && !this.#owner.frozen && !isLate && this.#scheduler.random.chance(0.7))
      this.#deliver();
  }
}

const names = new Map<string, string>();

/** Registers the names of scripts for the trace. */
export function nameScripts(scripts: ReadonlyMap<string, Script>): void {
  for (const { name, sha, combined } of scripts.values()) {
    names.set(sha, name);
    if (combined) names.set(combined.sha, `${name} (combined)`);
  }
}

const nameOf = ({ name, args }: Command): string => names.get(String(args[0])) ?? name;

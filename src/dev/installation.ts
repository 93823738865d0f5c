/** Runs private servers, migrations, all roles and demo data in one PETREL_HOME, and restarts them when they fail. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, demoKeyPath, rateSettings, redisGiven, resolvedEnvironment } from '../config/config.js';
import { checkRedis, RedisCheckError } from '../redis/check.js';
import type { DevInfo, Pids } from './announce.js';
import { type Demo, ensureDemo } from './demo.js';
import { writeFileAtomic } from './files.js';
import { keptSecrets, lockHome, openHome, type Secrets } from './home.js';
import { reservePort } from './port.js';
import { startPostgres } from './postgres.js';
import type { LocalServer } from './processes.js';
import { startRedis } from './redis.js';
import { ensureRedis } from './redis_install.js';
import { isAsLeft, noteLeft } from './redis_left.js';
import { Refusal } from './refusal.js';
import { runRole, startRole } from './role.js';
import { RoleLog } from './role_log.js';
import { type Supervised, supervise } from './supervisor.js';

export interface InstallationOptions {
  readonly say?: (line: string) => void;
  readonly main?: string;
  readonly signal?: AbortSignal;
}

type RoleName = 'front' | 'deliver' | 'flush';
/** The roles in the order of shutdown. Roles that accept work stop first. The role that saves the work stops last. */
const roleNames: readonly RoleName[] = ['front', 'deliver', 'flush'];

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`;

export class Installation {
  readonly #config: Config;
  readonly #say: (line: string) => void;
  readonly #main: string;
  readonly #signal: AbortSignal;
  readonly #given: Readonly<Record<string, string | undefined>>;
  readonly #host: string;
  /** Turns off rate limits that are not set, so that load tests work without configuration. */
  readonly #rates: Readonly<Record<string, string>>;
  readonly #roles: Record<RoleName, Supervised[]> = { front: [], deliver: [], flush: [] };
  #redis: Supervised | undefined;
  #postgres: Supervised | undefined;
  /** Whether this private Redis was stopped cleanly and its files have not changed since. */
  #redisKept = false;
  #redisUrl = '';
  #databaseUrl = '';
  #secrets: Secrets | undefined;
  #demo: Demo | undefined;
  readonly #demoKey = randomBytes(24).toString('base64url');
  #unlock: (() => void) | undefined;
  #releasePort: (() => Promise<void>) | undefined;
  #stopped: Promise<void> | undefined;

  constructor(config: Config, options: InstallationOptions = {}) {
    this.#config = config;
    this.#say = options.say ?? (() => {});
    this.#main = options.main ?? fileURLToPath(new URL('../main.js', import.meta.url));
    this.#signal = options.signal ?? new AbortController().signal;
    // Listens on loopback unless HOST is set. A front that runs without `npm start` listens on all addresses by
    // default.
    this.#given = resolvedEnvironment();
    this.#rates = Object.fromEntries(rateSettings.map((name) => [name, this.#given[name] || '0']));
    this.#host = this.#given.HOST ? config.HOST : '127.0.0.1';
  }

  /** Starts everything. If a step throws a Refusal, stops what is already running and rethrows the Refusal. */
  async start(): Promise<void> {
    try {
      await this.#prepare();
      await this.#startServers();
      await this.#startRoles();
      await this.#makeDemo();
    } catch (error) {
      await this.stop(AbortSignal.abort());
      throw error;
    }
  }

  get info(): DevInfo {
    if (!this.#demo || !this.#secrets) throw new Error('the installation has not started');
    return {
      base_url: this.#config.BASE_URL ?? this.#localUrl,
      admin_token: this.#secrets.ADMIN_TOKEN,
      demo_link: `${this.#localUrl}/app#/demo/${this.#demoKey}`,
      bot: this.#demo.bot,
      users: this.#demo.users,
      redis_url: this.#redisUrl,
      database_url: this.#databaseUrl,
      pids: this.#pids,
    };
  }

  stop(hurry?: AbortSignal): Promise<void> {
    this.#stopped ??= this.#stopAll(hurry);
    return this.#stopped;
  }

  get #home(): string {
    return this.#config.PETREL_HOME;
  }

  get #redisDir(): string {
    return join(this.#home, 'redis');
  }

  get #localUrl(): string {
    const host = ['0.0.0.0', '::'].includes(this.#host) ? '127.0.0.1' : this.#host;
    return `http://${host.includes(':') ? `[${host}]` : host}:${this.#config.PORT}`;
  }

  get #pids(): Pids {
    const of = (role: RoleName) => this.#roles[role].flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
    return {
      front: of('front'),
      deliver: of('deliver'),
      flush: of('flush'),
      redis: this.#redis?.pid ?? null,
      postgres: this.#postgres?.pid ?? null,
    };
  }

  get #demoPath(): string {
    return join(this.#home, 'demo.json');
  }

  get #infoPath(): string {
    return join(this.#home, 'dev.json');
  }

  #log = (line: string): void => {
    this.#say(`[${new Date().toISOString().slice(11, 19)}] ${line}`);
  };

  #writeInfo = (): void => {
    if (this.#demo && !this.#stopped)
      writeFileAtomic(this.#infoPath, `${JSON.stringify(this.info, null, 2)}\n`);
  };

  async #prepare(): Promise<void> {
    openHome(this.#home);
    this.#unlock = lockHome(this.#home);
    this.#releasePort = await reservePort(this.#host, this.#config.PORT);
    rmSync(this.#infoPath, { force: true });
    mkdirSync(join(this.#home, 'logs'), { recursive: true, mode: 0o700 });
    const kept = keptSecrets(this.#home);
    this.#secrets = {
      ADMIN_TOKEN: this.#config.ADMIN_TOKEN ?? kept.ADMIN_TOKEN,
      TOKEN_PEPPER: this.#given.TOKEN_PEPPER || kept.TOKEN_PEPPER,
      TOKEN_KEYS: this.#given.TOKEN_KEYS || kept.TOKEN_KEYS,
      VAPID_PRIVATE_KEY: this.#config.VAPID_PRIVATE_KEY ?? kept.VAPID_PRIVATE_KEY,
    };
    this.#say(`Petrel starts; its data is in ${this.#home}`);
  }

  async #startServers(): Promise<void> {
    const started = await Promise.allSettled([this.#startRedis(), this.#startPostgres()]);
    for (const result of started) if (result.status === 'rejected') throw result.reason;
    this.#signal.throwIfAborted();
  }

  async #startRedis(): Promise<void> {
    const since = performance.now();
    const given = redisGiven(this.#config);
    if (given === undefined) {
      await ensureRedis(this.#say);
      const dir = this.#redisDir;
      this.#redisKept = isAsLeft(dir);
      const start = (signal: AbortSignal, port?: number) =>
        startRedis({ dir, signal, log: this.#log, ...(port === undefined ? {} : { port }) });
      const server = await start(this.#signal);
      this.#redis = this.#keep('redis', server, start);
      this.#redisUrl = server.url;
    } else {
      this.#redisUrl = this.#config.REDIS_URL ?? (this.#config.REDIS_CLUSTER?.[0] as string);
    }
    try {
      const { version, warnings } = await checkRedis(given ?? this.#redisUrl);
      for (const warning of warnings) this.#say(`  Warning: ${warning}`);
      this.#say(
        `  Redis ${version} ${given ? `of ${Array.isArray(given) ? 'REDIS_CLUSTER' : 'REDIS_URL'}` : 'runs'} (${seconds(since)})`,
      );
    } catch (error) {
      throw error instanceof RedisCheckError ? new Refusal(error.message) : error;
    }
  }

  async #startPostgres(): Promise<void> {
    const given = this.#config.DATABASE_URL;
    if (given !== undefined) {
      this.#databaseUrl = given;
      return;
    }
    const since = performance.now();
    const dir = join(this.#home, 'postgres');
    const start = (signal: AbortSignal, port?: number) =>
      startPostgres({ dir, signal, log: this.#log, ...(port === undefined ? {} : { port }) });
    const server = await start(this.#signal);
    this.#postgres = this.#keep('postgres', server, start);
    this.#databaseUrl = server.url;
    this.#say(`  PostgreSQL runs (${seconds(since)})`);
  }

  /** Restarts a server whenever it ends. The new server gets the same port, because the other processes remember it. */
  #keep(
    name: string,
    server: LocalServer,
    start: (signal: AbortSignal, port: number) => Promise<LocalServer>,
  ): Supervised {
    return supervise(server, {
      name,
      start: (signal) => start(signal, server.port),
      log: this.#log,
      onChange: this.#writeInfo,
    });
  }

  get rates(): Readonly<Record<string, string>> {
    return Object.fromEntries(Object.entries(this.#rates).filter(([, rate]) => rate !== '0'));
  }

  #environment(): Record<string, string | undefined> {
    return {
      ...this.#given,
      ...this.#secrets,
      VAPID_SUBJECT: this.#config.VAPID_SUBJECT ?? 'mailto:operator@localhost',
      PORT: String(this.#config.PORT),
      // Turns off the metrics port, because several processes on one machine cannot share it.
      METRICS_PORT: undefined,
      DEMO_FILE: this.#demoPath,
      HOST: this.#host,
      PRIVATE_REDIS: this.#redis ? (this.#redisKept ? 'kept' : 'unknown') : undefined,
      SHARE_PORT: '1',
      // By default, stops fronts without a delay. The delay gives a load balancer time to stop using a front, but `dev`
      // has no load balancer.
      DRAIN_MS: this.#given.DRAIN_MS || '0',
      ...this.#rates,
      PETREL_HOME: this.#home,
      REDIS_URL: this.#config.REDIS_CLUSTER ? undefined : this.#redisUrl,
      DATABASE_URL: this.#databaseUrl,
    };
  }

  #roleLog(name: string): RoleLog {
    return new RoleLog(name, join(this.#home, 'logs', `${name}.log`), this.#log);
  }

  async #startRoles(): Promise<void> {
    const since = performance.now();
    const common = { main: this.#main, env: this.#environment() };
    await runRole({ ...common, role: 'migrate', log: this.#roleLog('migrate'), signal: this.#signal });
    this.#signal.throwIfAborted();
    this.#say(`  The database schema is up to date (${seconds(since)})`);
    await this.#releasePort?.();
    this.#releasePort = undefined;
    const counts = { front: this.#config.FRONTS, deliver: this.#config.WORKERS, flush: 1 };
    const rolesSince = performance.now();
    const starts = roleNames.flatMap((role) =>
      Array.from({ length: counts[role] }, (_, index) => this.#startRole(role, index, common)),
    );
    for (const result of await Promise.allSettled(starts)) {
      if (result.status === 'rejected') throw result.reason;
    }
    this.#signal.throwIfAborted();
    this.#say(`  ${roleNames.map((role) => `${counts[role]} ${role}`).join(', ')} (${seconds(rolesSince)})`);
  }

  async #startRole(
    role: RoleName,
    index: number,
    common: { main: string; env: Record<string, string | undefined> },
  ): Promise<void> {
    const name = index === 0 ? role : `${role}-${index + 1}`;
    const options = { ...common, role, log: this.#roleLog(name) };
    const first = await startRole({ ...options, signal: this.#signal });
    const kept = supervise(first, {
      name,
      start: (signal) => startRole({ ...options, signal }),
      log: this.#log,
      onChange: this.#writeInfo,
    });
    this.#roles[role].push(kept);
  }

  async #makeDemo(): Promise<void> {
    this.#demo = await ensureDemo({
      baseUrl: this.#localUrl,
      adminToken: this.#secrets?.ADMIN_TOKEN ?? '',
      path: this.#demoPath,
      database: this.#config.DATABASE_URL ?? 'private',
    });
    this.#signal.throwIfAborted();
    writeFileAtomic(demoKeyPath(this.#demoPath), this.#demoKey);
    this.#writeInfo();
  }

  async #stopAll(hurry?: AbortSignal): Promise<void> {
    // Removes the files of this run. If this run has no lock, the files may belong to another run of `dev` and are
    // kept.
    if (this.#unlock) {
      rmSync(this.#infoPath, { force: true });
      rmSync(demoKeyPath(this.#demoPath), { force: true });
    }
    for (const role of roleNames) await Promise.all(this.#roles[role].map((kept) => kept.stop(hurry)));
    await Promise.all([this.#redis?.stop(), this.#postgres?.stop()]);
    if (this.#redis) noteLeft(this.#redisDir);
    await this.#releasePort?.();
    this.#unlock?.();
  }
}

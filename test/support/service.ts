/**
 * Runs the real service for tests. Each role of the built service is a child process. The service
 * has a Redis and a database that no other service uses.
 *
 *   const service = await startService({ fronts: 2 });
 *   const owner = await service.newUser('olga');
 *   await resultOf(service.bot(await service.newBot(owner, 'echo'), 'getMe', {}, 1));
 *   await service.fronts[1].kill();
 *   await service.stop();
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { expect } from 'vitest';
import { migrate } from '../../src/postgres/migrate.js';
import { freshCluster } from './cluster.js';
import { petrel } from './command.js';
import { environment } from './environment.js';
import { createTokenSearch } from './plain_tokens.js';
import { createFront, createRole, type Front, type RoleProcess } from './role_process.js';
import { freshSentinels } from './sentinels.js';
import {
  type FreshDatabase,
  type FreshRedis,
  freshDatabase,
  freshRedis,
  migratedDatabase,
} from './servers.js';
import { createCalls } from './service_calls.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface TestUser {
  readonly id: number;
  readonly username: string;
  readonly first_name: string;
  readonly token: string;
}

export interface TestBot {
  readonly id: number;
  readonly username: string;
  readonly token: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface Service {
  readonly fronts: readonly [Front, ...Front[]];
  readonly deliver: RoleProcess;
  readonly flush: RoleProcess;
  readonly adminToken: string;
  readonly redis: FreshRedis;
  readonly databaseUrl: string;
  /**
   * The environment of the roles, without PORT. This environment is enough for `makeKeys`, for `createSecrets`, and for
   * starting more processes. Changes apply to roles that are started afterwards.
   */
  readonly env: Record<string, string>;
  /** Makes a call of the application API. `path` begins with `/api/`. `front` is an index, 0 if absent. */
  app(
    user: { readonly token: string },
    verb: string,
    path: string,
    body?: unknown,
    front?: number,
  ): Promise<Answer>;
  bot(
    bot: string | { readonly token: string },
    method: string,
    params?: Readonly<Record<string, unknown>>,
    front?: number,
  ): Promise<Answer>;
  /** Creates a person whose username is `name`, an underscore and a number. */
  newUser(name: string): Promise<TestUser>;
  /** Creates a bot whose username is `name`, a number and `bot`. */
  newBot(owner: TestUser, name: string): Promise<TestBot>;
  openChat(user: TestUser, bot: TestBot, payload?: string): Promise<Answer['body']>;
  newGroup(owner: TestUser, title: string, members?: readonly { readonly id: number }[]): Promise<number>;
  /** Registers a token that no call returned, so that `stop` also searches for this token. */
  issued(token: string): void;
  checkTokens(): Promise<void>;
  /**
   * Stops the processes of this service and the private Redis, and drops the database. Throws if a process wrote a
   * token.
   */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly fronts?: number;
  /**
   * Whether the first front also has the roles `deliver` and `flush`, which saves two processes. A test file that stops
   * one of these roles must not set this.
   */
  readonly combined?: boolean;
  /** If false, `flush` is not started. A test may start it later. */
  readonly flushing?: boolean;
  /**
   * If false, `deliver` is not started. Then no webhook is called, the management bot sends nothing, and no sweep runs.
   */
  readonly delivering?: boolean;
  /** Additional settings of all roles, for instance `{ JOURNAL_HIGH_WATER: '200' }`. */
  readonly extraEnv?: Readonly<Record<string, string>>;
  readonly frontEnv?: Readonly<Record<string, string>>;
  /**
   * A Redis or cluster to use instead of a private Redis. PETREL_TEST_REDIS sets the kind of the private Redis. `stop`
   * also stops this Redis.
   */
  readonly redis?: FreshRedis;
  /** If true, `petrel migrate` divides the data among shards. `extraEnv` must name the shards in DATABASE_SHARDS. */
  readonly divided?: boolean;
  /** An empty database to use instead of a new database on the shared server. `stop` drops this database too. */
  readonly database?: FreshDatabase;
}

/** Returns the `result` of an answer with status 200. Throws an error with the text of any other answer. */
// biome-ignore lint/suspicious/noExplicitAny: see Answer
export async function resultOf(answer: Answer | Promise<Answer>): Promise<any> {
  const { status, body } = await answer;
  if (status !== 200 || body?.ok !== true) throw new Error(`answered ${status} ${JSON.stringify(body)}`);
  return body.result;
}

/** Returns the items of a page. Throws as `resultOf` does. */
// biome-ignore lint/suspicious/noExplicitAny: see Answer
export const itemsOf = async (answer: Answer | Promise<Answer>): Promise<any> =>
  (await resultOf(answer)).items;

/** Starts a private Redis of the kind in PETREL_TEST_REDIS: `cluster`, `sentinel`, or a single server. */
function freshTopology(): Promise<FreshRedis> {
  const kind = process.env.PETREL_TEST_REDIS;
  if (kind === 'cluster') return freshCluster();
  return kind === 'sentinel' ? freshSentinels() : freshRedis();
}

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const { fronts = 1, extraEnv = {}, frontEnv = {} } = options;
  if (!existsSync(main)) throw new Error('there is no build: run the tests by `npm test`');
  const adminToken = randomBytes(24).toString('base64url');
  const [redis, database] = await Promise.all([
    options.redis ?? freshTopology(),
    options.database ?? (options.divided ? freshDatabase() : migratedDatabase()),
  ]);
  const env = { ...environment(redis, database.url, adminToken), ...extraEnv };
  const all = await Promise.all(
    Array.from({ length: fronts }, (_, index) =>
      createFront(env, frontEnv, options.combined && index === 0 ? 'all' : 'front'),
    ),
  );
  const [first, ...others] = all as [Front, ...Front[]];
  const deliver = options.combined ? first : createRole('deliver', async () => env);
  const flush = options.combined ? first : createRole('flush', async () => env);
  const roles = [...new Set([...all, deliver, flush])];
  const issued = new Set([adminToken]);
  const agent = new Agent({
    connections: 64,
    // Closes an idle connection before the front closes it after 8 s.
    keepAliveTimeout: 4_000,
    headersTimeout: 70_000,
    bodyTimeout: 70_000,
  });

  const plainTokens = createTokenSearch(database.url, redis.dir, roles, issued);
  const places = 'places where tokens lie in plain text';

  async function stop(): Promise<void> {
    await agent.destroy();
    // Resumes each process first, because a frozen process reacts only to SIGKILL.
    for (const role of roles) if (role.alive) role.resume();
    await Promise.all(roles.map((role) => role !== flush && role.stop()));
    await flush.stop();
    const plain = await plainTokens();
    await Promise.all([
      redis.stop(),
      database.drop(),
      rm(env.FILES_DIR as string, { recursive: true, force: true }),
    ]);
    expect(plain, places).toEqual([]);
  }

  try {
    if (options.database && !options.divided) await migrate(database.url);
    if (options.divided) {
      const { code, log } = await petrel(env, 'migrate');
      if (code !== 0) throw new Error(log);
    }
    const left = new Set<RoleProcess>();
    if (!options.combined && options.flushing === false) left.add(flush);
    if (!options.combined && options.delivering === false) left.add(deliver);
    const started = roles.filter((role) => !left.has(role));
    await Promise.all(started.map((role) => role.start()));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    fronts: [first, ...others],
    deliver,
    flush,
    adminToken,
    redis,
    databaseUrl: database.url,
    env,
    ...createCalls(all, adminToken, agent, issued),
    issued: (token) => issued.add(token),
    checkTokens: async () => expect(await plainTokens(), places).toEqual([]),
    stop,
  };
}

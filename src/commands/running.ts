/**
 * Runs a command. Some commands run one or more roles, and the others run a task. Roles run until a signal stops them.
 * A task ends by itself. An expected failure is reported in one sentence.
 */

import { BackupError } from '../backup/manifest.js';
import {
  type Config,
  ConfigError,
  misspelt,
  rateSettings,
  readConfig,
  redisGiven,
  resolvedEnvironment,
} from '../config/config.js';
import { version } from '../config/version.js';
import { devEnvironment } from '../dev/home.js';
import { Refusal } from '../dev/refusal.js';
import { EngineError } from '../http/engine.js';
import { type Adoption, IdentityError } from '../journal/identity.js';
import { createLog, type Logger } from '../obs/log.js';
import { SchemaError } from '../postgres/migrate.js';
import { type Backends, openBackends, StartError } from '../processes/backends.js';
import type { Role } from '../processes/role.js';
import { RedisCheckError } from '../redis/check.js';
import { CopyError } from '../redis/copy.js';
import type { Script } from '../redis/scripts/contract.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { systemTime } from '../time.js';

/** Starts a role. `stopping` is aborted when the process begins to shut down. */
export type Starter = (backends: Backends, stopping: AbortSignal) => Role | Promise<Role>;

export const settings = 'Settings come from the environment; infra/docs/settings.md lists them.';

function giveUp(log: Logger, error: unknown): never {
  const known =
    error instanceof ConfigError ||
    error instanceof EngineError ||
    error instanceof StartError ||
    error instanceof SchemaError ||
    error instanceof BackupError ||
    error instanceof CopyError ||
    error instanceof RedisCheckError ||
    error instanceof IdentityError ||
    error instanceof Refusal;
  const { message, code } = error as Error & { code?: string };
  if (log.level === 'silent') log.level = 'fatal';
  if (known && process.stderr.isTTY) process.stderr.write(`petrel: ${message}\n`);
  else log.fatal(known ? {} : { err: error }, message || code || 'the start failed');
  process.exit(1);
}

/** The settings of the roles, and the resources to close after the roles have stopped. */
export interface Prepared {
  readonly config: Config;
  /** The Redis scripts. By default the scripts in lua/. */
  readonly scripts?: ReadonlyMap<string, Script>;
  close(): Promise<void>;
}

const asGiven = async (config: Config): Promise<Prepared> => ({ config, close: async () => undefined });

/**
 * Runs roles in this process until a signal arrives or the parent process ends. Calls `prepare` before it opens the
 * backends.
 */
export async function serve(
  name: string,
  starters: readonly Starter[],
  prepare: (config: Config, log: Logger) => Promise<Prepared> = asGiven,
  time = systemTime,
): Promise<void> {
  let log = createLog('info', name);
  const roles: Role[] = [];
  let backends: Backends | undefined;
  const stopping = new AbortController();
  let starting: Promise<Role> | undefined;
  let preparing: Promise<Prepared> | undefined;
  const closePrepared = async () => (await preparing?.catch(() => undefined))?.close();
  let drainMs = 0;
  const stop = async () => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    const late = time.after(limits.roles_stop_ms_max + drainMs, () => {
      log.error('the shutdown took too long');
      process.exit(1);
    });
    // Waits for a role that is still starting, because only a started role can be stopped. The role may already serve
    // requests.
    await starting?.catch(() => undefined);
    let code = 0;
    const onError = (error: unknown) => {
      log.error({ err: error }, 'a part of the shutdown failed: the other parts continue');
      code = 1;
    };
    for (const role of roles) await role.stop().catch(onError);
    time.cancel(late);
    const closed = (backends?.close() ?? Promise.resolve()).then(() => true);
    if (!(await time.within(limits.backends_close_ms_max, closed).catch(onError)) && code === 0)
      log.warn(
        'Redis or Postgres did not answer during the shutdown: nothing is lost, and the process list drops this process by itself',
      );
    await closePrepared().catch(onError);
    log.info('stopped');
    process.exit(code);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.once('disconnect', stop);
  try {
    const given = readConfig();
    log = createLog(given.LOG_LEVEL, name);
    for (const line of misspelt()) log.warn(line);
    preparing = prepare(given, log);
    const { config, scripts } = await preparing;
    if (stopping.signal.aborted) return;
    drainMs = config.DRAIN_MS;
    backends = await openBackends(config, name, log, 'unless_used', { scripts });
    for (const start of starters) {
      if (stopping.signal.aborted) return;
      starting = Promise.resolve(start(backends, stopping.signal));
      roles.push(await starting);
    }
    log.info({ version }, 'ready');
    process.send?.({ type: 'ready' });
  } catch (error) {
    if (stopping.signal.aborted) return;
    await closePrepared().catch(() => undefined);
    giveUp(log, error);
  }
}

/**
 * Lets a command finish its work after the reader of its output has exited, as in `petrel redis rebuild | head`.
 * Without this, Node would end the process at the next write.
 */
export function ignoreClosedOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

/**
 * Runs `work` with the settings. Every error ends the process: an expected error is printed as one sentence, any other
 * with its stack.
 */
export async function task(
  name: string,
  work: (config: Config, log: Logger) => Promise<void>,
): Promise<void> {
  const log = createLog(process.stdout.isTTY ? 'warn' : 'info', name);
  ignoreClosedOutput();
  try {
    const config = readConfig();
    for (const line of misspelt()) process.stderr.write(`petrel: ${line}\n`);
    await work(config, log);
  } catch (error) {
    giveUp(log, error);
  }
}

/**
 * If neither Redis nor Postgres is set, returns the settings of the installation that `npm start` created in
 * PETREL_HOME, and prints which installation is used. Otherwise returns `config`.
 */
export function withDev(config: Config): Config {
  if (redisGiven(config) !== undefined || config.DATABASE_URL !== undefined) return config;
  const found = devEnvironment(config.PETREL_HOME, resolvedEnvironment());
  if (found === null) return config;
  process.stderr.write(`petrel: using the installation of npm start in ${config.PETREL_HOME}\n`);
  // Turns off the rate limits that are not set, as `npm start` does.
  return readConfig({ ...Object.fromEntries(rateSettings.map((name) => [name, '0'])), ...found });
}

export const withBackends = (
  work: (backends: Backends) => Promise<void>,
  name: string,
  adoption: Adoption = 'never',
): Promise<void> =>
  task(name, async (given, log) => {
    log.level = 'warn';
    const backends = await openBackends(withDev(given), name, log, adoption);
    await work(backends).finally(() => backends.close());
  });

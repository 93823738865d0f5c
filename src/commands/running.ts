/** How a command runs: as roles until a signal, or as a task that ends; what it fails with is told in one sentence. */
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
import { EngineError } from '../http/engine.js';
import { type Adoption, IdentityError } from '../journal/identity.js';
import { limits } from '../limits.js';
import { createLog, type Logger } from '../obs/log.js';
import { SchemaError } from '../postgres/migrate.js';
import { type Backends, openBackends, StartError } from '../processes/backends.js';
import type { Role } from '../processes/role.js';
import { RedisCheckError } from '../redis/check.js';
import { CopyError } from '../redis/copy.js';

/** `stopping` is aborted when the process begins to leave. */
export type Starter = (backends: Backends, stopping: AbortSignal) => Role | Promise<Role>;

/** What each command says at the end of its help. */
export const settings = 'Settings come from the environment; infra/docs/settings.md lists them.';

/** Ends the process with one sentence, as a line of log where a supervisor reads it. */
function giveUp(log: Logger, error: unknown): never {
  const known =
    error instanceof ConfigError ||
    error instanceof EngineError ||
    error instanceof StartError ||
    error instanceof SchemaError ||
    error instanceof BackupError ||
    error instanceof CopyError ||
    error instanceof RedisCheckError ||
    error instanceof IdentityError;
  const { message, code } = error as Error & { code?: string };
  // Whatever LOG_LEVEL says: a start that fails without a word cannot be mended.
  if (log.level === 'silent') log.level = 'fatal';
  // A person reads a sentence, a supervisor the log.
  if (known && process.stderr.isTTY) process.stderr.write(`petrel: ${message}\n`);
  else log.fatal(known ? {} : { err: error }, message || code || 'it could not start');
  process.exit(1);
}

/** Runs roles in this process until a signal, or until the process that started it has gone. */
export async function serve(name: string, starters: readonly Starter[]): Promise<void> {
  let log = createLog('info', name);
  const roles: Role[] = [];
  let backends: Backends | undefined;
  const stopping = new AbortController();
  let drainMs = 0;
  const stop = async () => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    const late = setTimeout(
      () => {
        log.error('the shutdown took too long');
        process.exit(1);
      },
      limits.shutdown_ms_max + drainMs + 5_000,
    );
    for (const role of roles) await role.stop();
    await backends?.close();
    clearTimeout(late);
    log.info('stopped');
    process.exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.once('disconnect', stop);
  try {
    const config = readConfig();
    log = createLog(config.LOG_LEVEL, name);
    for (const line of misspelt()) log.warn(line);
    drainMs = config.DRAIN_MS;
    backends = await openBackends(config, name, log, 'unless_used');
    for (const start of starters) roles.push(await start(backends, stopping.signal));
    log.info({ version }, 'ready');
    process.send?.({ type: 'ready' });
  } catch (error) {
    giveUp(log, error);
  }
}

/** Runs `work` with the settings. Errors end the process: what is expected with a sentence, all else with its stack. */
export async function task(
  name: string,
  work: (config: Config, log: Logger) => Promise<void>,
): Promise<void> {
  const log = createLog(process.stdout.isTTY ? 'warn' : 'info', name);
  try {
    const config = readConfig();
    for (const line of misspelt()) process.stderr.write(`petrel: ${line}\n`);
    await work(config, log);
  } catch (error) {
    giveUp(log, error);
  }
}

/**
 * The settings of the installation that `npm start` runs in PETREL_HOME, where neither a Redis nor a database is set; says so. The
 * same settings otherwise.
 */
export function withDev(config: Config): Config {
  if (redisGiven(config) !== undefined || config.DATABASE_URL !== undefined) return config;
  const found = devEnvironment(config.PETREL_HOME, resolvedEnvironment());
  if (found === null) return config;
  process.stderr.write(`petrel: using the installation of npm start in ${config.PETREL_HOME}\n`);
  // Its rates are off unless they are given.
  return readConfig({ ...Object.fromEntries(rateSettings.map((name) => [name, '0'])), ...found });
}

/** A task of an operator, on the stores of the installation. */
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

/** Reads the environment. No other module reads it. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { ruleLimits as limits } from '../rules/limits.js';
import { validBotUsername } from '../rules/usernames.js';
import { ConfigFileError, likelySetting, secretSettings, withFiles } from './config_file.js';
import {
  cidrs,
  flag,
  headerName,
  int,
  keyRing,
  peppers,
  postgresUrl,
  providerUrl,
  rate,
  rateText,
  servers,
  shards,
  signingKeys,
  standbys,
  suggestedNames,
  url,
  vapidKey,
  whole,
} from './setting_forms.js';

/** `infra/docs/settings.md` is generated from these settings and their descriptions. */
export const settings = {
  PORT: int(1, 65_535, 8081).describe('Port that a front listens on'),
  HOST: z.string().min(1).default('0.0.0.0').describe('Address that a front listens on (`dev`: 127.0.0.1)'),
  METRICS_PORT: whole(1, 65_535)
    .optional()
    .describe(
      'Port of `/metrics`, `/healthz` and `/readyz` on `deliver` and `flush`; off by default. A front always serves these paths on PORT',
    ),
  BASE_URL: url(['http:', 'https:']).optional().describe('Public URL of the service'),
  REDIS_URL: url(['redis:', 'rediss:'])
    .optional()
    .describe('URL of the Redis to use. Without it, `dev` starts a private Redis'),
  REDIS_CLUSTER: servers(6_379)
    .optional()
    .describe(
      'Addresses of some servers of a Redis Cluster, which is used instead of REDIS_URL. The other servers are discovered',
    ),
  REDIS_SENTINELS: servers(26_379)
    .optional()
    .describe(
      'Addresses of Sentinels. The host in REDIS_URL is then the name of the master in the Sentinels',
    ),
  REDIS_MEMORY_MAX: whole(1, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe(
      'Memory limit in bytes for a Redis without `maxmemory`. Above 85 % of the limit, sends and uploads are refused with 429',
    ),
  DATABASE_URL: postgresUrl
    .optional()
    .describe(
      'URL of the PostgreSQL to use. Without DATABASE_URL, `dev` starts a private PostgreSQL. If the URL lists several hosts, separated by commas, Petrel uses the host that is the primary. `?pooler=unnamed` means PgBouncer in transaction mode; `?pooler=prepared` means PgBouncer 1.21 or newer with `max_prepared_statements`',
    ),
  DATABASE_REPLICA_URLS: standbys
    .default([])
    .describe(
      'Standbys of the PostgreSQL of DATABASE_URL, separated by spaces; `1=postgres://…` is a standby of database 1 of DATABASE_SHARDS. If the messages of a history or an export are not in Redis, fronts read them from the standbys. If a standby has not yet replayed a message, the front reads the message from the primary',
    ),
  DATABASE_SHARDS: shards
    .default([])
    .describe(
      'PostgreSQL databases for the data of chats, in the form `1=postgres://…,2=postgres://…`. `petrel migrate` divides the partitions of a new installation evenly among these databases. By default, all data is in DATABASE_URL',
    ),
  PETREL_HOME: z.string().min(1).default('.petrel').describe('Folder with all data of `dev`'),
  FRONTS: int(1, 64, 1).describe('Front processes that `dev` starts'),
  WORKERS: int(1, 64, 1).describe('Deliver processes that `dev` starts'),
  PARTITIONS: int(1, limits.partitions_max, 64).describe(
    'Number of logical partitions, fixed when an installation is created',
  ),
  ADMIN_TOKEN: z
    .string()
    .min(16, { error: 'at least 16 characters' })
    .optional()
    .describe(
      'Bearer token for `/api/admin`, in addition to tokens from `petrel admin tokens add`; `dev` creates one',
    ),
  ADMIN_ALLOW_CIDRS: cidrs
    .default([])
    .describe('Client addresses that may call `/api/admin`; any address by default'),
  TOKEN_PEPPER: peppers
    .optional()
    .describe('Secrets for the hashes of tokens, newest first, separated by commas (`dev` makes one)'),
  TOKEN_KEYS: keyRing
    .optional()
    .describe('Keys that encrypt tokens at rest, `id:base64` of 32 bytes, newest first (`dev` makes one)'),
  JWT_JWKS_URL: url(['https:'])
    .optional()
    .describe('Public keys of an identity provider, whose JWTs the application API then accepts'),
  JWT_JWKS_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('File with the public keys of the identity provider, instead of JWT_JWKS_URL'),
  JWT_ISSUER: z.string().min(1).optional().describe('Required `iss` of the identity provider’s JWTs'),
  JWT_AUDIENCE: z
    .string()
    .min(1)
    .optional()
    .describe('Required `aud` of the identity provider’s JWTs: the name of this service at the provider'),
  JWT_SUBJECT_CLAIM: z.string().min(1).default('sub').describe('Claim of a JWT that identifies the person'),
  JWT_CREATE_USERS: flag
    .default(false)
    .describe('1: the first valid JWT of a subject creates a person; 0: operators link subjects to people'),
  SIGN_UP: z
    .enum(['open', 'closed'], { error: 'open or closed' })
    .default('closed')
    .describe(
      'open: anyone can create an account in the web application; closed: only administrators create people',
    ),
  SUGGESTED_CHATS: suggestedNames
    .default([])
    .describe(
      'Usernames of bots, public groups and public channels that the web application suggests to people with few chats',
    ),
  SIGN_UPS_PER_ADDRESS: rate
    .default({ calls: 10, seconds: 3_600 })
    .describe('Rate limit for the sign-ups of one client address. Refused sign-ups count too'),
  SIGN_UPS_TOTAL: rate
    .default({ calls: 1_000, seconds: 86_400 })
    .describe('Rate limit for the accounts that all people together create'),
  SIGN_INS_PER_ADDRESS: rate
    .default({ calls: 60, seconds: 60 })
    .describe(
      'Rate limit per client address for the calls of sign-ins through OIDC_ISSUER. A sign-in has two calls',
    ),
  OIDC_ISSUER: providerUrl
    .optional()
    .describe(
      'Issuer of an OpenID Connect provider through which people sign in to the web application. Needs OIDC_CLIENT_ID and BASE_URL. The redirect URI is `<BASE_URL>/app`',
    ),
  OIDC_CLIENT_ID: z.string().min(1).optional().describe('Client id of this service at the provider'),
  OIDC_CLIENT_SECRET: z
    .string()
    .min(1)
    .optional()
    .describe('Client secret of this service at the provider; a public client has none'),
  OIDC_SCOPES: z
    .string()
    .regex(/^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/, {
      error: 'names separated by blanks',
    })
    .refine((text) => text.split(' ').includes('openid'), { error: 'names separated by blanks, with openid' })
    .default('openid profile')
    .describe('Scopes that are requested from the provider'),
  OIDC_NAME: z
    .string()
    .min(1)
    .max(32, { error: 'up to 32 characters' })
    .optional()
    .describe('Name of the provider on the sign-in page; the host of OIDC_ISSUER by default'),
  OIDC_CREATE_USERS: flag
    .default(false)
    .describe('1: the first sign-in of a subject creates a person; 0: operators link subjects to people'),
  BOTS_PER_OWNER: int(1, limits.bots_per_owner_max, limits.bots_per_owner_max).describe(
    'Maximum number of bots of a person, including bots that others transferred to them',
  ),
  RATE_PER_BOT: rate
    .default({ calls: 2_000, seconds: 2 })
    .describe(
      'Rate limit for the calls of a bot. Calls of `getUpdates`, `streamUpdates` and `confirmUpdates` count against a separate limit, which is at least as high. A batch counts as one call per message, each mention of a person as one call, and a change of settings as 20 calls (`dev`: 0)',
    ),
  RATE_PER_OWNER: rate.optional().describe('Rate limit for the calls by all bots of one owner together'),
  RATE_PER_PERSON: rate
    .default({ calls: 30, seconds: 1 })
    .describe('Rate limit for the calls by a person to the application API (`dev`: 0)'),
  RATE_PER_CHAT: rate
    .default({ calls: 60, seconds: 1 })
    .describe(
      'Rate limit for changes in one chat. In each chat, all bots together share one limit, and each person has a separate limit. A batch counts as one change per message (`dev`: 0)',
    ),
  RATE_PER_ADDRESS: rate.optional().describe('Rate limit for the requests from one client address'),
  RATE_PER_READER: rate
    .default({ calls: 60, seconds: 10 })
    .describe('Rate limit for the pages of posts that one client address requests (`dev`: 0)'),
  POST_PAGES: flag
    .default(true)
    .describe(
      '1: everybody who has the link to a post of a public channel can read it without an account; 0: only people with an account can',
    ),
  LINK_PREVIEWS: flag
    .default(true)
    .describe(
      '1: the web application shows the title and the description of the first page that a message links to. For the previews, fronts load pages from the internet over HTTPS; 0: no previews',
    ),
  EDIT_AFTER_PRESS: flag
    .default(true)
    .describe(
      '1: after a press of an inline button, its bot may edit that message once more within the second; 0: a message can always be edited only once a second',
    ),
  UPLOAD_BYTES_PER_DAY: int(0, Number.MAX_SAFE_INTEGER, 10 * 1024 ** 3).describe(
    'Bytes that a person and their bots together may upload per day. Further uploads are refused with 429; 0 for no limit',
  ),
  UPLOAD_BYTES_TOTAL: int(0, Number.MAX_SAFE_INTEGER, 100 * 1024 ** 3).describe(
    'Maximum bytes of all stored uploads of a person and their bots. Further uploads are refused with 400; 0 for no limit',
  ),
  DEMO_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('Set by `dev`: file with the people that the demo link signs in'),
  FILES_DIR: z
    .string()
    .min(1)
    .optional()
    .describe('Folder of uploaded files, `files` in PETREL_HOME by default. Several machines must share it'),
  FILES_S3_URL: url(['http:', 'https:'])
    .optional()
    .describe('S3-compatible storage for uploaded files, instead of a folder'),
  FILES_S3_BUCKET: z
    .string()
    .min(3, { error: 'at least 3 characters' })
    .optional()
    .describe('Bucket of uploaded files; it must exist'),
  FILES_S3_REGION: z.string().min(1).default('us-east-1').describe('Region of the S3 storage'),
  FILES_S3_KEY_ID: z.string().min(1).optional().describe('Access key of the S3 storage'),
  FILES_S3_SECRET: z.string().min(1).optional().describe('Secret of the access key'),
  FILES_S3_PATH_STYLE: flag.default(true).describe('1: bucket in the path; 0: bucket in the host name'),
  HOT_TTL_MS: int(limits.hot_ttl_ms_min, 30 * 86_400_000, 3_600_000).describe(
    'How long a flushed record stays in Redis after its last use',
  ),
  HOT_BYTES_PER_BOT: int(0, Number.MAX_SAFE_INTEGER, 256 * 1024 ** 2).describe(
    'Maximum bytes of messages per bot, group or channel that stay in Redis for HOT_TTL_MS. Further messages leave Redis 10 s after they were flushed, and are read back from Postgres; 0 for no limit',
  ),
  REACTORS_LISTED: int(0, limits.reactors_listed_max, limits.reactors_listed_max).describe(
    'Maximum number of people listed per emoji on a post, latest first',
  ),
  JOURNAL_HIGH_WATER: int(100, 10_000_000, 100_000).describe(
    'Maximum number of journal entries per partition. If a partition exceeds this limit, changes in the partition are refused with 429',
  ),
  JOURNAL_BYTES_MAX: int(1024 ** 2, 64 * 1024 ** 3, 64 * 1024 ** 2).describe(
    'Maximum bytes of journal entries per partition. If a partition exceeds this limit, changes in the partition are refused with 429. The limit bounds the memory that journals use while Postgres is unavailable or slow',
  ),
  DURABLE: flag
    .default(false)
    .describe(
      '1: a front answers each change only when it is in Postgres; 0: only calls with the header `Prefer: durable` wait for Postgres',
    ),
  FLUSH_INTERVAL_MS: int(1, 10_000, 25).describe(
    'Minimum time in ms between two reads of an empty journal. After a batch that was not full, this time is four times as long',
  ),
  POSTGRES_POOL: int(2, 200, 8).describe('Postgres connections per process. Maintenance uses two at a time'),
  WEBHOOK_ALLOW_CIDRS: cidrs
    .default([])
    .describe(
      'Private, loopback or special address ranges that webhooks, notifications and link previews may contact, for tests and intranets',
    ),
  WEBHOOK_DENY_CIDRS: cidrs
    .default([])
    .describe(
      'Address ranges that webhooks, notifications and link previews never contact; overrides WEBHOOK_ALLOW_CIDRS',
    ),
  WEBHOOK_SIGNING_KEYS: signingKeys
    .optional()
    .describe(
      'Ed25519 private keys of the installation, each 32 random bytes as base64url. The first key signs each webhook delivery as `v1a` of Standard Webhooks. `/.well-known/jwks.json` publishes the public keys of all these private keys',
    ),
  VAPID_PRIVATE_KEY: vapidKey
    .optional()
    .describe(
      'Private key for Web Push (VAPID), base64url of 32 bytes (`dev` makes one); without it notifications are off',
    ),
  VAPID_SUBJECT: url(['mailto:', 'https:'])
    .optional()
    .describe(
      'Contact of the operator for push services: a mailto: or https: URL; an https BASE_URL by default',
    ),
  PUSH_DELAY_MS: int(0, 60_000, 3_000).describe(
    'Delay before the notification of a message, so that it can be read in an open window first',
  ),
  TRUSTED_PROXIES: cidrs
    .default([])
    .describe('Addresses of the balancers whose `X-Forwarded-For` is trusted'),
  GUESSES_BURST: int(0, 1_000_000, 300).describe(
    'Number of invalid tokens that one client address may try at once before it gets 429; 0 for no limit',
  ),
  GUESSES_PER_MINUTE: int(1, 60_000, 60).describe(
    'Number of invalid tokens per minute by which the allowance of an address grows again, up to GUESSES_BURST',
  ),
  LEAK_REPORT_KEYS: z
    .string()
    .min(1)
    .refine((text) => !/^\w+:\/\//.test(text) || (URL.canParse(text) && text.startsWith('https://')), {
      error: 'an https:// URL or the path of a file',
    })
    .optional()
    .describe(
      'URL or file of the public keys that verify reports of leaked tokens; without it `/api/leaks/report` is off',
    ),
  LEAK_REPORT_KEY_HEADER: headerName
    .default('Github-Public-Key-Identifier')
    .describe('Header with the id of the key that signed a report of leaked tokens'),
  LEAK_REPORT_SIGNATURE_HEADER: headerName
    .default('Github-Public-Key-Signature')
    .describe('Header with the signature of a report of leaked tokens'),
  HEADER_SERVICE_NAME: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9-]{0,31}$/, { error: 'up to 32 letters, digits and hyphens' })
    .default('Service')
    .describe('Word that replaces `Service` in the header names `X-Service-…` of webhook deliveries'),
  MANAGEMENT_BOT: z
    .string()
    .refine(validBotUsername, { error: 'a username that ends in "bot"' })
    .default('petrelbot')
    .describe('Username of the built-in management bot'),
  TRANSFER_CONSENT: flag
    .default(false)
    .describe('1: the recipient of a bot must accept the transfer within a week'),
  BACKUP_PASSPHRASE: z
    .string()
    .min(16, { error: 'at least 16 characters' })
    .optional()
    .describe('Passphrase of the file in which `petrel keys` seals keys and peppers'),
  AUDIT_DAYS: int(1, 3_650, 365).describe('Days that audit logs are kept'),
  SESSION_DAYS: int(1, 3_650, 30).describe(
    'Days after which a session of the web application ends if it is not used',
  ),
  START_MS: int(0, 600_000, 30_000).describe(
    'How long a role that starts waits for Redis and Postgres before it fails',
  ),
  MESSAGE_DAYS: whole(limits.message_days_min, limits.message_days_max)
    .optional()
    .describe('Days that messages and posts are kept, plus at most a tenth; forever if absent'),
  MEDIA_DAYS: whole(1, limits.message_days_max)
    .optional()
    .describe('Days that uploaded files are kept; forever if absent'),
  UPDATES_DAYS: int(0, 90, 0).describe(
    'Number of days for which delivered updates are kept, so that owners can replay them; with 0, only the last 100 updates of a bot are kept. At most MESSAGE_DAYS',
  ),
  DRAIN_MS: int(0, 60_000, 1_500).describe(
    'How long a front accepts connections after SIGTERM with `/readyz` at 503, so that load balancers notice (`dev`: 0)',
  ),
  PRIVATE_REDIS: z
    .enum(['kept', 'unknown'], { error: 'kept or unknown' })
    .optional()
    .describe('Set by `dev`: whether its private Redis was shut down cleanly'),
  SHARE_PORT: flag.default(false).describe('1: several fronts of one machine share one port (used by `dev`)'),
  ACCESS_LOG: flag
    .default(false)
    .describe('1: a front logs each request: call, caller, status and time; never a token'),
  OTLP_TRACES_URL: url(['http:', 'https:'])
    .optional()
    .describe(
      'URL that receives OpenTelemetry traces (OTLP over HTTP, JSON), like http://127.0.0.1:4318/v1/traces',
    ),
  OTLP_TRACES_RATIO: z.coerce
    .number({ error: 'a number from 0 to 1' })
    .min(0, { error: 'a number from 0 to 1' })
    .max(1, { error: 'a number from 0 to 1' })
    .default(0.01)
    .describe('Share of requests whose traces are sent'),
  PROMETHEUS_URL: url(['http:', 'https:'])
    .refine((text) => !URL.canParse(text) || new URL(text).username + new URL(text).password === '', {
      error: 'a URL without user and password',
    })
    .optional()
    .describe(
      'URL of a Prometheus that scrapes only this installation, like http://127.0.0.1:9090. The charts of /ops can then show up to 7 days',
    ),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'silent'], {
      error: 'fatal, error, warn, info, debug or silent',
    })
    .default('info')
    .describe('Lowest level of log lines to write'),
} as const;

export const rateSettings = [
  'RATE_PER_BOT',
  'RATE_PER_PERSON',
  'RATE_PER_OWNER',
  'RATE_PER_CHAT',
  'RATE_PER_ADDRESS',
  'RATE_PER_READER',
] as const;

const schema = z.object(settings);
export type Config = Readonly<z.output<typeof schema>> & { readonly FILES_DIR: string };

/**
 * Returns the path of the file that contains the key of the one-time sign-in link. The link signs a person in as any of
 * the demo people in `demoFile`.
 */
export const demoKeyPath = (demoFile: string): string => `${demoFile}.key`;

export function environmentOf(names: readonly string[]): Record<string, string | undefined> {
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

/** Thrown for an invalid setting. The message names the variable and its allowed values. */
export class ConfigError extends Error {}

function givenIn(env: Record<string, string | undefined>): Record<string, string | undefined> {
  const names = Object.keys(settings);
  try {
    const all = withFiles(env, names);
    return Object.fromEntries(names.flatMap((name) => (all[name] ? [[name, all[name]] as const] : [])));
  } catch (error) {
    throw error instanceof ConfigFileError ? new ConfigError(error.message) : error;
  }
}

/** Returns the environment with the values from all files, so that a child process need not read the files again. */
export function resolvedEnvironment(
  env: Record<string, string | undefined> = process.env,
): Record<string, string | undefined> {
  const files = ['PETREL_CONFIG', ...secretSettings.map((name) => `${name}_FILE`)];
  return { ...env, ...Object.fromEntries(files.map((name) => [name, undefined])), ...givenIn(env) };
}

/**
 * Reads the settings from the environment, and from the files that the environment names. Empty variables count as
 * absent. The result is frozen.
 */
export function readConfig(env: Record<string, string | undefined> = process.env): Config {
  const given = givenIn(env);
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `${String(issue.path[0])} must be ${issue.message}`);
    throw new ConfigError(lines.join('\n'));
  }
  const config = parsed.data;
  const folder = (path: string) => resolve(path.replace(/^~(?=\/|$)/, homedir()));
  const PETREL_HOME = folder(config.PETREL_HOME);
  const FILES_DIR = config.FILES_DIR === undefined ? join(PETREL_HOME, 'files') : folder(config.FILES_DIR);
  return Object.freeze({ ...config, PETREL_HOME, FILES_DIR });
}

type Required<K extends keyof Config> = Config & { readonly [P in K]-?: NonNullable<Config[P]> };

/**
 * Returns the configured Redis: a single server, a master behind Sentinels, or seed servers of a cluster. Undefined if
 * none is set. Throws a ConfigError for settings that exclude each other.
 */
export function redisGiven({ REDIS_URL, REDIS_CLUSTER, REDIS_SENTINELS }: Config) {
  if (REDIS_URL !== undefined && REDIS_CLUSTER !== undefined)
    throw new ConfigError('REDIS_URL and REDIS_CLUSTER exclude each other');
  if (REDIS_SENTINELS === undefined) return REDIS_CLUSTER ?? REDIS_URL;
  if (REDIS_URL === undefined)
    throw new ConfigError('REDIS_SENTINELS needs REDIS_URL, redis://:<password>@<name of their master>');
  return { url: REDIS_URL, sentinels: REDIS_SENTINELS };
}

/** Like `redisGiven`, but throws a ConfigError if no Redis is set. */
export function redisOf(config: Config) {
  const given = redisGiven(config);
  if (given === undefined) throw new ConfigError('REDIS_URL or REDIS_CLUSTER is required: the Redis to use');
  return given;
}

/**
 * Returns the settings of the identity provider, or undefined if there is none. Throws a ConfigError if they are
 * incomplete.
 */
export function providerOf(config: Config) {
  const { JWT_JWKS_URL, JWT_JWKS_FILE } = config;
  if (JWT_JWKS_URL === undefined && JWT_JWKS_FILE === undefined) return undefined;
  if (JWT_JWKS_URL !== undefined && JWT_JWKS_FILE !== undefined)
    throw new ConfigError('JWT_JWKS_URL and JWT_JWKS_FILE exclude each other');
  const { JWT_ISSUER, JWT_AUDIENCE } = requireSettings(config, ['JWT_ISSUER', 'JWT_AUDIENCE']);
  return {
    source: JWT_JWKS_URL === undefined ? { file: JWT_JWKS_FILE as string } : { url: JWT_JWKS_URL },
    issuer: JWT_ISSUER,
    audience: JWT_AUDIENCE,
    subjectClaim: config.JWT_SUBJECT_CLAIM,
    createUsers: config.JWT_CREATE_USERS,
  };
}

/**
 * Returns the settings of the OpenID Connect provider, or undefined if there is none. Throws a ConfigError if they are
 * incomplete or contradict the JWT settings.
 */
export function signInOf(config: Config) {
  const { OIDC_ISSUER, OIDC_CLIENT_SECRET, JWT_ISSUER, JWT_SUBJECT_CLAIM } = config;
  if (OIDC_ISSUER === undefined) return undefined;
  const { OIDC_CLIENT_ID } = requireSettings(config, ['OIDC_CLIENT_ID', 'BASE_URL']);
  // Only one issuer's subjects are mapped to people, so JWT_ISSUER and OIDC_ISSUER must be equal.
  if (JWT_ISSUER !== undefined && (JWT_ISSUER !== OIDC_ISSUER || JWT_SUBJECT_CLAIM !== 'sub'))
    throw new ConfigError(
      'OIDC_ISSUER needs the same JWT_ISSUER, and JWT_SUBJECT_CLAIM=sub, if JWTs are accepted',
    );
  return {
    issuer: OIDC_ISSUER,
    clientId: OIDC_CLIENT_ID,
    clientSecret: OIDC_CLIENT_SECRET,
    scopes: config.OIDC_SCOPES,
    name: config.OIDC_NAME ?? new URL(OIDC_ISSUER).hostname,
    createUsers: config.OIDC_CREATE_USERS,
    redirectUri: `${baseUrlOf(config)}/app`,
  };
}

/** Returns the issuer whose subjects are mapped to people. Undefined if no identity provider is set. */
export const issuerOf = (config: Config): string | undefined =>
  providerOf(config)?.issuer ?? signInOf(config)?.issuer;

export { rateText };

export function ratesOf(config: Config): Readonly<Record<string, string>> {
  const rates = rateSettings.map((name) => [name, config[name]] as const);
  return Object.fromEntries(
    rates.flatMap(([name, rate]) => (rate === undefined || rate.calls === 0 ? [] : [[name, rateText(rate)]])),
  );
}

/** Returns the public URL of the service, without a trailing slash. */
export const baseUrlOf = ({ BASE_URL, PORT }: Config): string =>
  (BASE_URL ?? `http://localhost:${PORT}`).replace(/\/+$/, '');

export const ratesText = (rates: Readonly<Record<string, string>>): string =>
  Object.entries(rates)
    .map(([name, rate]) => `${name}=${rate}`)
    .join(', ') || 'none: every RATE_PER_ setting is off';

/**
 * Returns the key and the contact with which push notifications are signed, or undefined if push notifications are off.
 * Throws a ConfigError if the contact is missing.
 */
export function pushOf({ VAPID_PRIVATE_KEY, VAPID_SUBJECT, BASE_URL }: Config) {
  if (VAPID_PRIVATE_KEY === undefined) return undefined;
  const subject = VAPID_SUBJECT ?? (BASE_URL?.startsWith('https:') ? BASE_URL : undefined);
  if (subject === undefined)
    throw new ConfigError('VAPID_PRIVATE_KEY needs VAPID_SUBJECT: a mailto: or https: URL of the operator');
  return { privateKey: VAPID_PRIVATE_KEY, subject };
}

/**
 * Returns the configuration if all the named settings are set. Otherwise throws a ConfigError with a line for each
 * missing setting.
 */
export function requireSettings<K extends keyof Config>(config: Config, names: readonly K[]): Required<K> {
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length > 0)
    throw new ConfigError(
      missing.map((name) => `${name} is required: ${settings[name].description}`).join('\n'),
    );
  return config as Required<K>;
}

/**
 * Returns the S3 storage for files, or undefined if files are stored in a folder. Throws a ConfigError if its settings
 * are incomplete.
 */
export function s3Of(config: Config) {
  if (config.FILES_S3_URL === undefined) return undefined;
  const s3 = requireSettings(config, ['FILES_S3_BUCKET', 'FILES_S3_KEY_ID', 'FILES_S3_SECRET']);
  return {
    url: config.FILES_S3_URL,
    bucket: s3.FILES_S3_BUCKET,
    region: s3.FILES_S3_REGION,
    keyId: s3.FILES_S3_KEY_ID,
    secret: s3.FILES_S3_SECRET,
    pathStyle: s3.FILES_S3_PATH_STYLE,
  };
}

/** Returns the settings that a role needs. Throws one ConfigError that names all missing settings. */
export function requireAll(config: Config) {
  const problems: string[] = [];
  const parts: ReadonlyArray<(config: Config) => unknown> = [
    redisOf,
    (all) => requireSettings(all, ['DATABASE_URL', 'TOKEN_PEPPER', 'TOKEN_KEYS']),
    s3Of,
    providerOf,
    signInOf,
    pushOf,
  ];
  for (const part of parts)
    try {
      part(config);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(error.message);
    }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return requireSettings(config, ['DATABASE_URL', 'TOKEN_PEPPER', 'TOKEN_KEYS']);
}

/**
 * Returns a line for each variable that looks like a misspelt setting. The line names the setting that was probably
 * meant.
 */
export function misspelt(env: Record<string, string | undefined> = process.env): string[] {
  const names = Object.keys(settings);
  return Object.entries(env).flatMap(([name, value]) => {
    // Skips variables that Kubernetes sets to the addresses of its services.
    if (/^(tcp|udp):\/\//.test(value ?? '')) return [];
    const meant = likelySetting(name, names);
    return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`];
  });
}

/** Defines the Redis to which Petrel connects: one server, a Sentinel-managed master, or a cluster. */
import { Redis, type RedisOptions, SentinelConnector } from 'ioredis';
import './replies.js';
import { shownUrl } from './slots.js';

/** A master that Sentinels watch. The Sentinels know the master's current address. */
export interface Watched {
  /** `redis://:password@<name of the master>`. Password and protocol apply to every server that becomes master. */
  readonly url: string;
  /** The password and protocol of the first URL apply to all Sentinels. */
  readonly sentinels: readonly string[];
}

export type RedisServer = string | Watched;

/** One server, or the seed URLs of a cluster. */
export type RedisTarget = RedisServer | readonly string[];

export const isCluster = (target: RedisTarget): target is readonly string[] => Array.isArray(target);

export const masterName = ({ url }: Watched): string => decodeURIComponent(new URL(url).hostname);

const sentinelPort = 26_379;

/** Returns the name of a server without passwords, for messages. */
export function shownServer(server: RedisServer): string {
  if (typeof server === 'string') return shownUrl(server);
  return `the master ${masterName(server)} of ${server.sentinels.length} Sentinels`;
}

export function credentials(url: string): { readonly username?: string; readonly password?: string } {
  const { username, password } = new URL(url);
  return {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
  };
}

type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * Before a reconnect, stops the previous failover detector. Otherwise this detector could report a new master during
 * the reconnect, and the report would close the client permanently.
 */
class MasterConnector extends SentinelConnector {
  override connect(...args: Parameters<SentinelConnector['connect']>) {
    this.disconnect();
    return super.connect(...args);
  }
}

function optionsOf(server: Watched): ClientOptions {
  const [first = ''] = server.sentinels;
  const { username, password } = credentials(first);
  return {
    sentinels: server.sentinels.map((url) => ({
      host: new URL(url).hostname.replace(/^\[|\]$/g, ''),
      port: Number(new URL(url).port || sentinelPort),
    })),
    name: masterName(server),
    role: 'master',
    Connector: MasterConnector as NonNullable<RedisOptions['Connector']>,
    // Connects to the new master as soon as the Sentinels name one, even if the old master hangs and keeps its
    // connection open.
    failoverDetector: true,
    sentinelCommandTimeout: 1_000,
    sentinelRetryStrategy: (attempt) => Math.min(1_000, 50 * attempt),
    sentinelReconnectStrategy: (attempt) => Math.min(1_000, 50 * attempt),
    ...credentials(server.url),
    ...(password === undefined ? {} : { sentinelPassword: password }),
    ...(username === undefined ? {} : { sentinelUsername: username }),
    ...(new URL(server.url).protocol === 'rediss:' ? { tls: {}, enableTLSForSentinelMode: true } : {}),
    ...(first.startsWith('rediss:') ? { sentinelTLS: {} } : {}),
  };
}

/**
 * Creates a client for one server. With Sentinels, the client asks the Sentinels for the master at each reconnect, and
 * checks that the server that they name is a master.
 */
export function openClient(server: RedisServer, options: ClientOptions): Redis {
  return typeof server === 'string'
    ? new Redis(server, options)
    : new Redis({ ...optionsOf(server), ...options });
}

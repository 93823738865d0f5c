/** Which Redis to speak to: one server, the one that Sentinels name, or a cluster. */
import { Redis, type RedisOptions, SentinelConnector } from 'ioredis';
import './replies.js';
import { shownUrl } from './slots.js';

/** A master that Sentinels watch: whichever server they name at the moment. */
export interface Watched {
  /** `redis://:password@<name of the master>`: protocol and password hold for whoever is master. */
  readonly url: string;
  /** URLs of Sentinels; the password and protocol of the first one hold for all. */
  readonly sentinels: readonly string[];
}

/** One server at a time. */
export type RedisServer = string | Watched;

/** That, or seeds of a cluster. */
export type RedisTarget = RedisServer | readonly string[];

export const isCluster = (target: RedisTarget): target is readonly string[] => Array.isArray(target);

/** The name of the master that Sentinels know. */
export const masterName = ({ url }: Watched): string => decodeURIComponent(new URL(url).hostname);

/** The port on which Sentinels listen unless told otherwise. */
const sentinelPort = 26_379;

/** A target without its passwords, for messages. */
export function shownServer(server: RedisServer): string {
  if (typeof server === 'string') return shownUrl(server);
  return `the master ${masterName(server)} of ${server.sentinels.length} Sentinels`;
}

const credentials = (url: string) => {
  const { username, password } = new URL(url);
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
};

type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/**
 * After a connection was lost its detector still listens. A new master that it heard of while this one asks the Sentinels would end
 * the client for good, so the detector goes first. The next connection has a detector of its own.
 */
class MasterConnector extends SentinelConnector {
  override connect(...args: Parameters<SentinelConnector['connect']>) {
    this.disconnect();
    return super.connect(...args);
  }
}

function optionsOf(server: Watched): ClientOptions {
  const { username, password } = credentials(server.url);
  const [first = ''] = server.sentinels;
  const sentinel = credentials(first);
  return {
    sentinels: server.sentinels.map((url) => ({
      host: new URL(url).hostname.replace(/^\[|\]$/g, ''),
      port: Number(new URL(url).port || sentinelPort),
    })),
    name: masterName(server),
    role: 'master',
    Connector: MasterConnector as NonNullable<RedisOptions['Connector']>,
    // A master that hangs is left as soon as another one is named.
    failoverDetector: true,
    sentinelCommandTimeout: 1_000,
    sentinelRetryStrategy: (attempt) => Math.min(1_000, 50 * attempt),
    sentinelReconnectStrategy: (attempt) => Math.min(1_000, 50 * attempt),
    ...(password === '' ? {} : { password }),
    ...(username === '' ? {} : { username }),
    ...(sentinel.password === '' ? {} : { sentinelPassword: sentinel.password }),
    ...(sentinel.username === '' ? {} : { sentinelUsername: sentinel.username }),
    ...(new URL(server.url).protocol === 'rediss:' ? { tls: {}, enableTLSForSentinelMode: true } : {}),
    ...(first.startsWith('rediss:') ? { sentinelTLS: {} } : {}),
  };
}

/** A client of one server. With Sentinels each new connection goes to whom they name then, once it says itself that it is master. */
export function openClient(server: RedisServer, options: ClientOptions): Redis {
  return typeof server === 'string'
    ? new Redis(server, options)
    : new Redis({ ...optionsOf(server), ...options });
}

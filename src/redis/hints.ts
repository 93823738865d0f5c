/**
 * Sharded pub/sub messages (hints) that something changed. A hint may be lost, so listeners also poll.
 *
 * A channel is subscribed to on the master of its slot, and again after a reconnect or when the slot moves.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { SlotMap } from './cluster.js';
import { reconnectDelay } from './connection.js';
import { slotOf } from './slots.js';
import { openClient, type RedisServer } from './target.js';

export interface Hints {
  /**
   * Calls `listener` with the text of each hint, until the returned function is called. Resolves once subscribed, or
   * after a second without a subscription, so that one failed server does not block listeners on others.
   */
  listen(channel: string, listener: (text: string) => void): Promise<() => void>;
  close(): void;
}

/** How long to keep an unused subscription, because a polling bot soon returns. */
const lingerMs = 5_000;
const subscribeMsMax = 1_000;
/** Pause before retrying a failed subscription. */
const retryMs = 250;

interface Channel {
  readonly name: string;
  readonly slot: number;
  readonly listeners: Set<(text: string) => void>;
  /** the subscriber for its slot, connected or still connecting; null while the slot's master is unknown */
  at: Subscriber | null;
  readonly subscribed: Promise<void>;
  readonly settle: () => void;
  lingering: NodeJS.Timeout | undefined;
}

interface Subscriber {
  readonly url: string;
  readonly client: Redis;
  readonly channels: Set<Channel>;
}

const oneServer = (url: string): SlotMap => ({
  urlAt: () => url,
  learn: () => undefined,
  onMove: () => undefined,
});

/** Maps channels to server URLs, and URLs to connection settings. */
function placesOf(servers: RedisServer | SlotMap): {
  readonly map: SlotMap;
  serverAt(url: string): RedisServer;
} {
  if (typeof servers === 'string') return { map: oneServer(servers), serverAt: (url) => url };
  if ('sentinels' in servers) return { map: oneServer(servers.url), serverAt: () => servers };
  return { map: servers, serverAt: (url) => url };
}

export function createHints(
  servers: RedisServer | SlotMap,
  name: string,
  onError?: (error: Error) => void,
): Hints {
  const { map, serverAt } = placesOf(servers);
  const channels = new Map<string, Channel>();
  const subscribers = new Map<string, Subscriber>();
  let closed = false;

  function subscriberAt(url: string): Subscriber {
    const present = subscribers.get(url);
    if (present) return present;
    const client = openClient(serverAt(url), {
      connectionName: `petrel-${name}-hints`,
      protocol: 2,
      // The subscriptions are managed here, because their slots may have moved before a reconnect.
      autoResubscribe: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      retryStrategy: reconnectDelay,
      disableClientInfo: true,
    });
    const subscriber: Subscriber = { url, client, channels: new Set() };
    subscribers.set(url, subscriber);
    client.on('error', (error: Error) => onError?.(error));
    client.on('smessage', (channel: string, text: string) => {
      for (const listener of channels.get(channel)?.listeners ?? []) listener(text);
    });
    const subscribeAll = () => {
      for (const channel of subscriber.channels) void subscribe(channel, subscriber);
    };
    client.on('ready', subscribeAll);
    // Redis ended a subscription because its slot moved. Subscribing again finds the new master.
    client.on('moved', () => void sleep(retryMs).then(subscribeAll));
    return subscriber;
  }

  async function subscribe(channel: Channel, subscriber: Subscriber): Promise<void> {
    const wanted = () => !closed && channel.at === subscriber && channels.get(channel.name) === channel;
    while (wanted() && subscriber.client.status === 'ready') {
      try {
        await subscriber.client.ssubscribe(channel.name);
        channel.settle();
        return;
      } catch (error) {
        const { message } = error as Error;
        map.learn(message, subscriber.url);
        if (wanted() && !message.startsWith('MOVED')) onError?.(error as Error);
        await sleep(retryMs);
      }
    }
  }

  /** Subscribes to a channel on the master of its slot. */
  function place(channel: Channel): void {
    const url = map.urlAt(channel.slot);
    if (url === null || channel.at?.url === url) return;
    // The former master ends the subscription when it loses the slot.
    channel.at?.channels.delete(channel);
    channel.at = subscriberAt(url);
    channel.at.channels.add(channel);
    void subscribe(channel, channel.at);
  }

  function leave(channel: Channel): void {
    const { at } = channel;
    if (at === null) return;
    channel.at = null;
    at.channels.delete(channel);
    if (at.client.status === 'ready') at.client.sunsubscribe(channel.name).catch(() => undefined);
  }

  map.onMove(() => {
    for (const channel of channels.values()) place(channel);
    for (const [url, subscriber] of subscribers) {
      if (subscriber.channels.size > 0) continue;
      subscribers.delete(url);
      subscriber.client.disconnect();
    }
  });

  function open(name: string): Channel {
    let settle = () => {};
    const subscribed = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const channel: Channel = {
      name,
      slot: slotOf(name),
      listeners: new Set(),
      at: null,
      subscribed,
      settle,
      lingering: undefined,
    };
    channels.set(name, channel);
    place(channel);
    return channel;
  }

  function release(channel: Channel, listener: (text: string) => void): void {
    channel.listeners.delete(listener);
    if (channel.listeners.size > 0) return;
    channel.lingering = setTimeout(() => {
      channels.delete(channel.name);
      leave(channel);
    }, lingerMs).unref();
  }

  return {
    async listen(name, listener) {
      const channel = channels.get(name) ?? open(name);
      clearTimeout(channel.lingering);
      channel.listeners.add(listener);
      let late: NodeJS.Timeout | undefined;
      const lateness = new Promise<void>((resolve) => {
        late = setTimeout(resolve, subscribeMsMax);
      });
      await Promise.race([channel.subscribed, lateness]);
      clearTimeout(late);
      return () => release(channel, listener);
    },
    close() {
      closed = true;
      for (const channel of channels.values()) clearTimeout(channel.lingering);
      for (const { client } of subscribers.values()) client.disconnect();
    },
  };
}

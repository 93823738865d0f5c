/**
 * Sharded pub/sub: hints that something changed. A hint may be lost; whoever waits looks again by itself.
 *
 * A channel is subscribed to at the master of its slot. It is subscribed to again on a new connection, and elsewhere when
 * its slot has moved.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { SlotMap } from './cluster.js';
import { reconnectDelay } from './connection.js';
import { slotOf } from './slots.js';
import { openClient, type RedisServer } from './target.js';

export interface Hints {
  /**
   * Calls `listener` with each hint's text until the returned function is called. Resolves once subscribed, or after a
   * second without: one server that is away must not hold up who listens on others too.
   */
  listen(channel: string, listener: (text: string) => void): Promise<() => void>;
  close(): void;
}

/** An unused subscription is kept this long: a bot that polls comes back at once. */
const lingerMs = 5_000;
const subscribeMsMax = 1_000;
/** Rest before a refused subscription is tried again. */
const retryMs = 250;

interface Channel {
  readonly name: string;
  readonly slot: number;
  readonly listeners: Set<(text: string) => void>;
  /** where it is subscribed to, or will be once that is connected */
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

/** Where channels are, and how the server of a URL is reached. */
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
      // What is to be subscribed to is known here, and may belong elsewhere by the time a connection stands.
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
    // Redis ended a subscription because its slot went: where it is now shows when it is asked for again.
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

  /** Sees to it that a channel is subscribed to where its slot is. */
  function place(channel: Channel): void {
    const url = map.urlAt(channel.slot);
    if (url === null || channel.at?.url === url) return;
    // The former master ends the subscription by itself, with the slot.
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

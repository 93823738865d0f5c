/**
 * Sends and receives hints. A hint is a sharded pub/sub message that reports a change. A hint may be lost, so listeners
 * also poll. A client subscribes to each channel on the master of the channel's slot. It subscribes again after a
 * reconnect and when the slot moves.
 */
import type { Redis } from 'ioredis';
import { type Random, systemRandom } from '../random.js';
import { systemTime, type Time, type Timer } from '../time.js';
import type { SlotMap } from './cluster.js';
import { reconnectDelay } from './connection.js';
import { slotOf } from './slots.js';
import { openClient, type RedisServer } from './target.js';

export type Hints = Pick<RedisHints, 'listen' | 'close'>;

/** How long to keep an unused subscription. A bot that polls again within this time need not subscribe again. */
const lingerMs = 5_000;
const subscribeMsMax = 1_000;
const retryMs = 250;

interface Channel {
  readonly name: string;
  readonly slot: number;
  readonly listeners: Set<(hint: Buffer) => void>;
  /** The subscriber, which may still be connecting. Null while the master of the slot is unknown. */
  at: Subscriber | null;
  readonly subscribed: Promise<void>;
  readonly settle: () => void;
  lingering: Timer | undefined;
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

const isMap = (servers: RedisServer | SlotMap): servers is SlotMap =>
  typeof servers !== 'string' && !('sentinels' in servers);

/**
 * Manages the subscriptions to channels. A channel is open while it has listeners, and for `lingerMs` afterwards. An
 * open channel is either subscribed on the master of its slot, or waiting to be subscribed.
 */
export class RedisHints {
  readonly #map: SlotMap;
  readonly #server: RedisServer | undefined;
  readonly #name: string;
  readonly #time: Time;
  readonly #random: Random;
  readonly #onError: ((error: Error) => void) | undefined;
  readonly #channels = new Map<string, Channel>();
  readonly #subscribers = new Map<string, Subscriber>();
  #closed = false;

  constructor(
    servers: RedisServer | SlotMap,
    name: string,
    onError?: (error: Error) => void,
    { time = systemTime, random = systemRandom }: { readonly time?: Time; readonly random?: Random } = {},
  ) {
    this.#time = time;
    this.#random = random;
    this.#server = isMap(servers) ? undefined : servers;
    this.#map = isMap(servers) ? servers : oneServer(typeof servers === 'string' ? servers : servers.url);
    this.#name = name;
    this.#onError = onError;
    this.#map.onMove(() => this.#followSlots());
  }

  /**
   * Calls `listener` with the bytes of each hint, until the caller calls the returned function. Resolves when the
   * channel is subscribed, but after a second at the latest. A failed server therefore does not block listeners on
   * other servers.
   */
  async listen(name: string, listener: (hint: Buffer) => void): Promise<() => void> {
    const channel = this.#channels.get(name) ?? this.#open(name);
    this.#time.cancel(channel.lingering);
    channel.listeners.add(listener);
    await this.#time.within(subscribeMsMax, channel.subscribed);
    return () => this.#release(channel, listener);
  }

  close(): void {
    this.#closed = true;
    for (const channel of this.#channels.values()) this.#time.cancel(channel.lingering);
    for (const { client } of this.#subscribers.values()) client.disconnect();
  }

  #open(name: string): Channel {
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
    this.#channels.set(name, channel);
    this.#place(channel);
    return channel;
  }

  #release(channel: Channel, listener: (hint: Buffer) => void): void {
    channel.listeners.delete(listener);
    if (channel.listeners.size > 0) return;
    channel.lingering = this.#time
      .after(lingerMs, () => {
        this.#channels.delete(channel.name);
        const { at } = channel;
        channel.at = null;
        at?.channels.delete(channel);
        if (at?.client.status === 'ready') at.client.sunsubscribe(channel.name).catch(() => undefined);
      })
      .unref();
  }

  #place(channel: Channel): void {
    const url = this.#map.urlAt(channel.slot);
    if (url === null || channel.at?.url === url) return;
    // Does not unsubscribe from the former master. When that master loses the slot, it ends the subscription itself.
    channel.at?.channels.delete(channel);
    channel.at = this.#subscriberAt(url);
    channel.at.channels.add(channel);
    void this.#subscribe(channel, channel.at);
  }

  #followSlots(): void {
    for (const channel of this.#channels.values()) this.#place(channel);
    for (const [url, subscriber] of this.#subscribers) {
      if (subscriber.channels.size > 0) continue;
      this.#subscribers.delete(url);
      subscriber.client.disconnect();
    }
  }

  #subscriberAt(url: string): Subscriber {
    const present = this.#subscribers.get(url);
    if (present) return present;
    const client = openClient(this.#server ?? url, {
      connectionName: `petrel-${this.#name}-hints`,
      protocol: 2,
      // Turns off the client's automatic renewal of subscriptions. After a reconnect, a channel's slot may be on
      // another server, so this module subscribes again itself.
      autoResubscribe: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      retryStrategy: (attempt) => reconnectDelay(attempt, this.#random.number()),
      disableClientInfo: true,
    });
    const subscriber: Subscriber = { url, client, channels: new Set() };
    this.#subscribers.set(url, subscriber);
    client.on('error', (error: Error) => this.#onError?.(error));
    client.on('smessageBuffer', (channel: Buffer, hint: Buffer) => {
      for (const listener of this.#channels.get(String(channel))?.listeners ?? []) listener(hint);
    });
    const subscribeAll = () => {
      for (const channel of subscriber.channels) void this.#subscribe(channel, subscriber);
    };
    client.on('ready', subscribeAll);
    // Redis ended the subscription because the slot moved. Subscribes again on the new master.
    client.on('moved', () => void this.#time.sleep(retryMs).then(subscribeAll));
    return subscriber;
  }

  async #subscribe(channel: Channel, subscriber: Subscriber): Promise<void> {
    const wanted = () =>
      !this.#closed && channel.at === subscriber && this.#channels.get(channel.name) === channel;
    while (wanted() && subscriber.client.status === 'ready') {
      try {
        await subscriber.client.ssubscribe(channel.name);
        channel.settle();
        return;
      } catch (error) {
        const { message } = error as Error;
        this.#map.learn(message, subscriber.url);
        if (wanted() && !message.startsWith('MOVED')) this.#onError?.(error as Error);
        await this.#time.sleep(retryMs);
      }
    }
  }
}

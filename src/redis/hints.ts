/** Sharded pub/sub: hints that something changed. A hint may be lost; whoever waits looks again by itself. */
import { Redis } from 'ioredis';

export interface Hints {
  /** Calls `listener` with each hint's text until the returned function is called. Resolves once subscribed. */
  listen(channel: string, listener: (text: string) => void): Promise<() => void>;
  close(): void;
}

/** An unused subscription is kept this long: a bot that polls comes back at once. */
const lingerMs = 5_000;

interface Channel {
  readonly listeners: Set<(text: string) => void>;
  subscribed: Promise<unknown>;
  lingering: NodeJS.Timeout | undefined;
}

export function createHints(url: string, name: string, onError?: (error: Error) => void): Hints {
  const client = new Redis(url, {
    connectionName: `petrel-${name}-hints`,
    protocol: 2,
    maxRetriesPerRequest: null,
    retryStrategy: (attempt) => Math.min(1_000, 20 * 2 ** Math.min(attempt, 6)),
    disableClientInfo: true,
  });
  const channels = new Map<string, Channel>();
  client.on('error', (error: Error) => onError?.(error));
  client.on('smessage', (channel: string, text: string) => {
    for (const listener of channels.get(channel)?.listeners ?? []) listener(text);
  });

  function release(name: string, channel: Channel, listener: (text: string) => void): void {
    channel.listeners.delete(listener);
    if (channel.listeners.size > 0) return;
    channel.lingering = setTimeout(() => {
      channels.delete(name);
      client.sunsubscribe(name).catch(() => undefined);
    }, lingerMs).unref();
  }

  return {
    async listen(name, listener) {
      let channel = channels.get(name);
      if (!channel) {
        channel = { listeners: new Set(), subscribed: client.ssubscribe(name), lingering: undefined };
        channels.set(name, channel);
      }
      clearTimeout(channel.lingering);
      channel.listeners.add(listener);
      const joined = channel;
      try {
        await channel.subscribed;
      } catch (error) {
        joined.listeners.delete(listener);
        channels.delete(name);
        throw error;
      }
      return () => release(name, joined, listener);
    },
    close() {
      for (const channel of channels.values()) clearTimeout(channel.lingering);
      client.disconnect();
    },
  };
}

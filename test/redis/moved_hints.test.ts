/** Tests hints of a channel whose slot moves to another master while a node unsubscribes from the channel. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SlotMap } from '../../src/redis/cluster.js';
import { RedisHints } from '../../src/redis/hints.js';
import { clusterSlot } from '../../src/redis/slots.js';
import { eventually } from '../clients/event_source.js';
import { type ClusterNode, type FreshCluster, freshCluster } from '../support/cluster.js';

let cluster: FreshCluster;
beforeAll(async () => {
  cluster = await freshCluster();
});
afterAll(() => cluster?.stop());

/** Starts a proxy in front of a server. The proxy can hold back the output of the server until `release` is called. */
async function startHolding(port: number) {
  const held: Array<() => void> = [];
  const sockets: Socket[] = [];
  let holding = false;
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    sockets.push(client, upstream);
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.pipe(upstream);
    upstream.on('data', (chunk) => {
      if (holding) held.push(() => client.write(chunk));
      else client.write(chunk);
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    hold() {
      holding = true;
    },
    heldCount: () => held.length,
    release() {
      holding = false;
      for (const pass of held.splice(0)) pass();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * Listens to a channel on a master whose output can be held back. A second channel stays on this master and
 * keeps the connection open.
 */
async function listenAt(tag: string, lasting: string) {
  const [channel, slot] = [`{${tag}}:on_bot:1`, clusterSlot(tag)];
  const from = await cluster.ownerOf(slot);
  const to = (from + 1) % 3;
  expect(await cluster.ownerOf(clusterSlot(lasting))).toBe(from);
  const [old, next] = [cluster.nodes[from] as ClusterNode, cluster.nodes[to] as ClusterNode];
  const proxy = await startHolding(old.port);
  const proxied = new URL(old.url);
  proxied.port = String(proxy.port);
  let url = proxied.href;
  let moved = () => {};
  const map: SlotMap = {
    urlAt: (of) => (of === slot ? url : proxied.href),
    learn: () => undefined,
    onMove: (listener) => {
      moved = listener;
    },
  };
  const errors: string[] = [];
  const received: string[] = [];
  const hints = new RedisHints(map, 'test', (error) => errors.push(error.message));
  const unlisten = await hints.listen(channel, (hint) => received.push(String(hint)));
  await hints.listen(`{${lasting}}:on_bot:2`, (hint) => received.push(String(hint)));
  const subscribers = async () =>
    (await old.client.call('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number];
  await eventually(async () => expect((await subscribers())[1]).toBe(1));
  return {
    ...{ next, errors, received, proxy, unlisten },
    async move() {
      proxy.hold();
      await cluster.beginMove(slot, from, to);
      await cluster.endMove(slot, to);
      await eventually(() => expect(proxy.heldCount()).toBeGreaterThan(0));
    },
    learn() {
      url = next.url;
      moved();
    },
    hear: (text: string) =>
      eventually(async () => {
        await next.client.spublish(channel, text);
        expect(received).toContain(text);
      }),
    /** Expects that the connection whose output was held back still delivers hints of the second channel. */
    hearLasting: (text: string) =>
      eventually(async () => {
        await old.client.spublish(`{${lasting}}:on_bot:2`, text);
        expect(received).toContain(text);
      }),
    async close() {
      hints.close();
      await proxy.close();
    },
  };
}

test('when the slot of a subscribed channel moves, the node gets the hints of this channel from the new master', async () => {
  const at = await listenAt('one', 'four');
  try {
    await at.move();
    at.learn();
    const count = at.proxy.heldCount();
    await at.hear('from the new master');
    expect(at.proxy.heldCount()).toBe(count);
    at.proxy.release();
    await at.hearLasting('from the old master');
    expect(at.errors).toEqual([]);
  } finally {
    await at.close();
  }
}, 180_000);

test('when a slot moves during an unsubscribe, Redis sends a message and an error, and the client treats both as one reply', async () => {
  const at = await listenAt('five', 'four');
  try {
    await at.move();
    const count = at.proxy.heldCount();
    at.unlisten();
    // A connection closes an unused subscription only after five seconds.
    await eventually(() => expect(at.proxy.heldCount()).toBeGreaterThan(count));
    at.proxy.release();
    await at.hearLasting('in step');
    expect(at.errors).toEqual([]);
  } finally {
    await at.close();
  }
}, 180_000);

/** Hints of a channel whose slot moves to another master while the node unsubscribes from it. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SlotMap } from '../../src/redis/cluster.js';
import { createHints } from '../../src/redis/hints.js';
import { clusterSlot } from '../../src/redis/slots.js';
import { eventually } from '../clients/event_source.js';
import { type ClusterNode, type FreshCluster, freshCluster } from '../support/cluster.js';

let cluster: FreshCluster;
beforeAll(async () => {
  cluster = await freshCluster();
}, 60_000);
afterAll(() => cluster?.stop());

/** A proxy in front of a server that can hold back the server’s output until it is released. */
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

/** A channel on a master whose output can be held back, beside a channel that stays there and keeps the connection open. */
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
  const heard: string[] = [];
  const hints = createHints(map, 'test', (error) => errors.push(error.message));
  const unlisten = await hints.listen(channel, (text) => heard.push(text));
  await hints.listen(`{${lasting}}:on_bot:2`, (text) => heard.push(text));
  const subscribers = async () =>
    (await old.client.call('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number];
  await eventually(async () => expect((await subscribers())[1]).toBe(1));
  return {
    ...{ next, errors, heard, proxy, unlisten },
    /** Moves the slot. The notice of the old master is held back. */
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
        expect(heard).toContain(text);
      }),
    /** Hints of the channel that stays arrive over the connection that was held back. */
    hearLasting: (text: string) =>
      eventually(async () => {
        await old.client.spublish(`{${lasting}}:on_bot:2`, text);
        expect(heard).toContain(text);
      }),
    async close() {
      hints.close();
      await proxy.close();
    },
  };
}

test('when a slot moves while its channel is subscribed, hints come from the new master', async () => {
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
}, 60_000);

test('when a slot moves during an unsubscribe, the notice and the refusal are counted as one', async () => {
  const at = await listenAt('five', 'four');
  try {
    await at.move();
    const count = at.proxy.heldCount();
    at.unlisten();
    // An unused subscription is kept for five seconds.
    await eventually(() => expect(at.proxy.heldCount()).toBeGreaterThan(count));
    at.proxy.release();
    await at.hearLasting('in step');
    expect(at.errors).toEqual([]);
  } finally {
    await at.close();
  }
}, 60_000);

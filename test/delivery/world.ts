/** Bots with webhooks on real stores, an HTTPS receiver that records requests, and any number of workers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createReceivers } from '../../src/delivery/outbound/receivers.js';
import { Sender } from '../../src/delivery/outbound/send.js';
import { WakeQueue } from '../../src/delivery/wake_queue.js';
import { DeliveryWorker, type DeliveryWorkerOptions } from '../../src/delivery/worker.js';
import { connectQueueClient, type QueueClient } from '../../src/redis/queue_client.js';
import { type ChatRef, directChat } from '../../src/store/core/keys.js';
import type { WebhookSettings } from '../../src/store/webhooks/webhooks.js';
import { makeCertificate } from '../support/certificates.js';
import { startReceiver } from '../support/receivers.js';
import { makeBot, makeUser, type Person, startCluster, type TestNode, text } from '../support/store.js';

const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
const receivers = createReceivers(['127.0.0.0/8']);

export interface Arrival {
  readonly updateId: number;
  readonly chat: number;
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface Books {
  readonly url: string;
  readonly certificate: string;
  readonly arrivals: Arrival[];
  /** The requests that were answered with a 2xx status, in the order of the answers. */
  readonly taken: readonly Arrival[];
  readonly open: number;
  mostOpen: number;
  /** Waits until the receiver has accepted `count` different updates. `msMax` is 40 s by default. */
  tookIn(count: number, msMax?: number): Promise<void>;
  close(): Promise<void>;
}

export type Answer = (arrival: Arrival) => number | Promise<number>;

export async function keepBooks(answer: Answer = () => 200): Promise<Books> {
  const arrivals: Arrival[] = [];
  const taken: Arrival[] = [];
  let open = 0;
  const seen = new Set<number>();
  const receiver = await startReceiver(certificate, async (request, response: ServerResponse, body) => {
    open++;
    books.mostOpen = Math.max(books.mostOpen, open);
    let gone = false;
    const leave = () => {
      if (!gone) open--;
      gone = true;
    };
    response.on('close', leave);
    const update = JSON.parse(body.toString());
    const message = update.message ?? update.edited_message;
    const arrival: Arrival = {
      ...{
        updateId: update.update_id,
        chat: message?.chat.id,
        text: message?.text,
        headers: request.headers,
      },
      body,
    };
    arrivals.push(arrival);
    const status = await answer(arrival);
    if (status >= 200 && status < 300) {
      taken.push(arrival);
      seen.add(arrival.updateId);
    }
    // Counts the request as ended before the answer, because the sender may send its next request as soon as it has the
    // answer.
    leave();
    response.writeHead(status).end();
  });
  const books: Books = {
    url: `https://127.0.0.1:${receiver.port}/hook`,
    certificate: certificate.cert,
    arrivals,
    taken,
    get open() {
      return open;
    },
    mostOpen: 0,
    async tookIn(count, msMax = 40_000) {
      const end = performance.now() + msMax;
      while (seen.size < count) {
        if (performance.now() > end) throw new Error(`${seen.size} of ${count} were taken`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    close: () => receiver.close(),
  };
  return books;
}

/**
 * Returns a function that decides the answers of a receiver. In each chat, the receiver refuses the first attempt of
 * every tenth update, and also the second attempt of every fiftieth update. The text of an update is its number in the
 * chat. The refusals are not random, because random refusals could delay one update for too long.
 */
export function refuseSome(): Answer {
  const attempts = new Map<string, number>();
  return ({ chat, text }) => {
    const update = `${chat} ${text}`;
    const earlier = attempts.get(update) ?? 0;
    attempts.set(update, earlier + 1);
    const number = chat + Number(text);
    return number % 10 === 0 && earlier < (number % 50 === 0 ? 2 : 1) ? 500 : 200;
  };
}

export interface World {
  readonly cluster: Awaited<ReturnType<typeof startCluster>>;
  /** A node that changes data and wakes the workers, like a front. */
  readonly front: TestNode;
  worker(options?: Partial<DeliveryWorkerOptions>): Promise<{
    readonly node: TestNode;
    readonly worker: DeliveryWorker;
    /** Stops the worker as if its process were killed: it releases no lease and writes nothing. */
    kill(): Promise<void>;
  }>;
  close(): Promise<void>;
}

export const settingsFor = (books: Books, more: Partial<WebhookSettings> = {}): WebhookSettings => ({
  ...{ url: books.url, secretToken: null, certificate: books.certificate },
  ...{ maxConnections: 40, address: '127.0.0.1', ...more },
});

export const keepQueue = { drop: false, mask: null } as const;

export async function startWorld(): Promise<World> {
  const cluster = await startCluster();
  const { keys, redis } = cluster;
  const endings: Array<() => Promise<unknown>> = [];

  function wakeQueue(errors: unknown[]): WakeQueue & { readonly clients: QueueClient[] } {
    const clients: QueueClient[] = [];
    const follow = (client: QueueClient): QueueClient => {
      clients.push(client);
      const duplicate = client.duplicate.bind(client) as (...given: never[]) => QueueClient;
      return Object.assign(client, { duplicate: (...given: never[]) => follow(duplicate(...given)) });
    };
    const made = new WakeQueue({
      connect: () => follow(connectQueueClient(redis.url, 'test', (error) => errors.push(error))),
      tags: [keys.partitions.tag(0), keys.partitions.tag(2)],
      shardOf: (bot) => Math.floor(keys.partitions.of(bot) / 2),
      onError: (error) => errors.push(error),
    });
    endings.unshift(() => (clients[0]?.status === 'end' ? Promise.resolve() : made.close()));
    return Object.assign(made, { clients });
  }

  async function node(): Promise<{ readonly node: TestNode; readonly queue: ReturnType<typeof wakeQueue> }> {
    const made = await cluster.node();
    const queue = wakeQueue(made.errors);
    made.hooks.wake = (bot) => queue.wake(bot);
    return { node: made, queue };
  }

  const { node: front } = await node();
  return {
    cluster,
    front,
    async worker(options = {}) {
      const { node: own, queue } = await node();
      const sender = new Sender({ guard: receivers.guard });
      let cut = false;
      const worker = new DeliveryWorker({
        store: own.store,
        wakeQueue: queue,
        send: (...given) => sender.send(...given),
        signer: { service: 'Service' },
        onError: (error) => own.errors.push(error),
        ...options,
      });
      endings.unshift(
        () => sender.close(),
        async () => cut || worker.stop(),
      );
      worker.start();
      return {
        node: own,
        worker,
        async kill() {
          cut = true;
          for (const client of queue.clients) client.disconnect();
          own.hooks.call = () => new Promise(() => undefined);
          own.hooks.wake = () => undefined;
          own.hooks.hint = () => false;
          await sender.close();
          await own.connection.close();
        },
      };
    },
    async close() {
      for (const end of endings) await end();
      await cluster.close();
    },
  };
}

export async function makeChats(front: TestNode, people: number) {
  const owner = await makeUser(front);
  const bot = await makeBot(front, owner);
  const users: Person[] = [];
  for (let i = 0; i < people; i++) {
    const user = i === 0 ? owner : await makeUser(front);
    await front.store.chats.openDirect(bot.id, user.id);
    users.push(user);
  }
  const chats: ChatRef[] = users.map((user) => directChat(bot.id, user.id));
  return {
    bot,
    users,
    say: (person: number, words: string) =>
      front.store.messages.send(chats[person] as ChatRef, (users[person] as Person).sender, text(words)),
  };
}

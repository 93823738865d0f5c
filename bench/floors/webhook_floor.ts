/**
 * Sends webhook requests in a separate process, as the baseline for the service's deliveries. Sends the same requests
 * as the service over the same number of connections: once with undici alone, once with one BullMQ job per request. For
 * each round, the process prepares a task, sends `ready` and waits for `go`. Each round opens new connections, as the
 * service does after a pause. The compiled code stays warm between rounds.
 */
import { createHash } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { type Dispatcher, Pool } from 'undici';
import { makeSigner } from '../../src/delivery/outbound/sign.js';

export interface WebhookFloorTask {
  readonly kind: 'bare' | 'jobs';
  readonly redisUrl: string;
  readonly origin: string;
  /** The receiver's certificate as PEM. No other certificate is trusted. */
  readonly certificate: string;
  readonly secretToken: string;
  /** The number of connections per bot. Each URL path of the receiver belongs to one bot. */
  readonly connections: number;
  readonly requests: readonly (readonly [path: string, body: string])[];
}

interface Prepared {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

type Job = readonly [path: string, body: string];

function poolsOf({ origin, certificate, connections, requests }: WebhookFloorTask): Map<string, Pool> {
  const options = { connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 };
  const paths = new Set(requests.map(([path]) => path));
  return new Map(
    [...paths].map((path) => [path, new Pool(origin, { ...options, connect: { ca: certificate } })]),
  );
}

function signer({ secretToken }: WebhookFloorTask) {
  const secret = `whsec_${createHash('sha256').update(secretToken).digest('base64')}`;
  const sign = makeSigner({ secret, secretToken }, { service: 'Service' });
  return (path: string, text: string): Prepared => {
    const body = Buffer.from(text);
    const nowS = Math.floor(Date.now() / 1_000);
    return { path, body, headers: { ...sign({ botId: path.slice(1), updateId: 1, body, nowS }) } };
  };
}

const failed = (error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
};

/** A prepared round: the function that runs it, and the function that cleans up after it. */
interface Ready {
  go(): void;
  end(): Promise<unknown>;
}

const endAll = (pools: ReadonlyMap<string, Pool>) =>
  Promise.all([...pools.values()].map((pool) => pool.destroy()));

/** Each connection sends the requests of one bot, one at a time. All requests are signed in advance. */
function prepareBare(task: WebhookFloorTask): Ready {
  const sign = signer(task);
  const byPath = new Map<string, Prepared[]>();
  for (const [path, text] of task.requests) {
    const own = byPath.get(path) ?? [];
    byPath.set(path, own);
    own.push(sign(path, text));
  }
  const pools = poolsOf(task);
  const go = () => {
    for (const [path, pool] of pools) {
      const waiting = (byPath.get(path) ?? []).values();
      const next = () => {
        const { value, done } = waiting.next();
        if (done) return;
        const handler: Dispatcher.DispatchHandler = {
          onRequestStart() {},
          onResponseStart() {},
          onResponseData() {},
          onResponseEnd: next,
          onResponseError: (_, error) => failed(error),
        };
        pool.dispatch({ method: 'POST', ...value }, handler);
      };
      for (let line = 0; line < task.connections; line++) next();
    }
  };
  return { go, end: () => endAll(pools) };
}

/**
 * Delivers with one BullMQ worker that runs one job per connection in parallel. The time to add the jobs is not
 * measured.
 */
async function prepareJobs(task: WebhookFloorTask): Promise<Ready> {
  const clients = [0, 1].map(() => new Redis(task.redisUrl, { maxRetriesPerRequest: null }));
  const [asking, working] = clients as [Redis, Redis];
  const pools = poolsOf(task);
  const sign = signer(task);
  const options = { prefix: `{bench-${process.pid}}` };
  const queue = new Queue<Job>('deliveries', { ...options, connection: asking });
  const kept = { removeOnComplete: true, removeOnFail: true };
  const step = 500;
  for (let i = 0; i < task.requests.length; i += step)
    await queue.addBulk(
      task.requests.slice(i, i + step).map((data) => ({ name: 'delivery', data, opts: kept })),
    );
  const worker = new Worker<Job>(
    'deliveries',
    async ({ data: [path, text] }) => {
      const answer = await (pools.get(path) as Pool).request({ method: 'POST', ...sign(path, text) });
      await answer.body.dump();
      if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`);
    },
    { ...options, connection: working, concurrency: pools.size * task.connections, autorun: false },
  );
  worker.on('error', failed).on('failed', (_, error) => failed(error));
  return {
    go: () => void worker.run().catch(failed),
    async end() {
      await worker.close();
      await queue.close();
      for (const client of clients) client.disconnect();
      await endAll(pools);
    },
  };
}

let ready: Ready | undefined;
process.on('message', async (word: WebhookFloorTask | 'go') => {
  if (word === 'go') return ready?.go();
  await ready?.end();
  ready = word.kind === 'bare' ? prepareBare(word) : await prepareJobs(word);
  process.send?.('ready');
});
process.once('disconnect', () => process.exit(0));

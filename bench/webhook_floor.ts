/**
 * What webhook deliveries are compared with, in a process of its own: the same requests with the same connections, once
 * from undici alone, once by one BullMQ job each. It says `ready` when all is prepared, sends on `go`, and ends with its parent.
 */
import { createHash } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { type Dispatcher, Pool } from 'undici';
import { makeSigner } from '../src/delivery/sign.js';

export interface WebhookFloorTask {
  readonly kind: 'bare' | 'jobs';
  readonly redisUrl: string;
  readonly origin: string;
  /** PEM, the only trust anchor */
  readonly certificate: string;
  readonly secretToken: string;
  /** Connections of each bot; a path is a bot. */
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
  const sign = makeSigner({ secret, secretToken }, 'Service');
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

/** One line after another takes the next request of its bot. All is signed before. */
function prepareBare(task: WebhookFloorTask): () => void {
  const sign = signer(task);
  const byPath = new Map<string, Prepared[]>();
  for (const [path, text] of task.requests) {
    const own = byPath.get(path) ?? [];
    byPath.set(path, own);
    own.push(sign(path, text));
  }
  return () => {
    for (const [path, pool] of poolsOf(task)) {
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
}

/** One worker with as many jobs at a time as there are connections. Queueing them is not measured. */
async function prepareJobs(task: WebhookFloorTask): Promise<() => void> {
  const connect = () => new Redis(task.redisUrl, { maxRetriesPerRequest: null });
  const pools = poolsOf(task);
  const sign = signer(task);
  const options = { prefix: `{bench-${process.pid}}` };
  const queue = new Queue<Job>('deliveries', { ...options, connection: connect() });
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
    { ...options, connection: connect(), concurrency: pools.size * task.connections, autorun: false },
  );
  worker.on('error', failed).on('failed', (_, error) => failed(error));
  return () => void worker.run().catch(failed);
}

process.once('message', async (task: WebhookFloorTask) => {
  const go = task.kind === 'bare' ? prepareBare(task) : await prepareJobs(task);
  process.once('message', go);
  process.send?.('ready');
});
process.once('disconnect', () => process.exit(0));

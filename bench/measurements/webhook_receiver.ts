/**
 * Receives webhooks over HTTPS in a separate process. Answers 200 immediately and stores the requests. Signatures,
 * duplicates and order are checked after the round, so that receiving costs little. A round may begin with a barrier:
 * no request is answered until requests have arrived on a given number of connections. The barrier makes every sender
 * use the same number of connections.
 */
import { createHmac } from 'node:crypto';
import { createServer, type TLSSocket } from 'node:tls';
import type { Certificate } from '../service/certificate.js';

export interface Expected {
  readonly kind: 'expect';
  readonly count: number;
  /** The measured part begins after `from` requests and ends after `until` requests. */
  readonly from: number;
  readonly until: number;
  /** The barrier: no request is answered until requests have arrived on this many connections. */
  readonly connections: number;
}

export interface ReceiverTask {
  readonly certificate: Certificate;
  /** The secret with which `X-Service-Signature` is made. */
  readonly secretToken: string;
}

/**
 * What the receiver recorded in a round. The text of each update begins with its sequence number and its due time (Unix
 * time in ms).
 */
export interface Books {
  readonly kind: 'books';
  readonly arrived: number;
  readonly distinct: number;
  readonly wrongSignatures: number;
  /** How many updates arrived after a later update of the same chat. */
  readonly disordered: number;
  readonly rate: number;
  readonly connections: number;
  /**
   * The time in ms from the due time of each update to its arrival. The index is the sequence number. NaN for an update
   * that did not arrive.
   */
  readonly latencies: readonly number[];
  /**
   * The path and the body of each received request, in the order of the sequence numbers. The baseline senders send
   * these requests again.
   */
  readonly requests?: readonly (readonly [path: string, body: string])[];
}

export type ReceiverAsk = Expected | { readonly kind: 'tell'; readonly requests: boolean };
export type ReceiverWord =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'from' | 'until' | 'done' }
  | Books;

interface Arrival {
  readonly at: number;
  readonly socket: TLSSocket;
  readonly head: string;
  readonly body: Buffer;
}

/** How many unexpected requests are stored. */
const excess = 1_000;
const head_bytes_max = 16_384;
const ok = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
const nothing = Buffer.alloc(0);

let expected: Expected = { kind: 'expect', count: 0, from: 0, until: 0, connections: 0 };
let arrivals: Arrival[] = [];
/** The connections whose first request is not answered yet. Null after the barrier has opened. */
let held: TLSSocket[] | null = null;

const say = (word: ReceiverWord) => void process.send?.(word);
const now = () => performance.timeOrigin + performance.now();

function arrive(socket: TLSSocket, head: string, body: Buffer): void {
  if (arrivals.length > expected.count + excess) return;
  arrivals.push({ at: now(), socket, head, body });
  if (arrivals.length === expected.from) say({ kind: 'from' });
  if (arrivals.length === expected.until) say({ kind: 'until' });
  if (arrivals.length === expected.count) say({ kind: 'done' });
}

function answer(socket: TLSSocket): void {
  if (held === null) return void socket.write(ok);
  held.push(socket);
  if (held.length < expected.connections) return;
  for (const each of held) each.write(ok);
  held = null;
}

/** Reads webhook requests from one connection. Closes a connection that sends anything else. */
function receive(socket: TLSSocket): void {
  let rest: Buffer = nothing;
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) {
        if (rest.length > head_bytes_max) socket.destroy();
        return;
      }
      const head = rest.toString('latin1', 0, end);
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? Number.NaN);
      if (!head.startsWith('POST /') || Number.isNaN(length)) return void socket.destroy();
      if (rest.length < end + 4 + length) return;
      arrive(socket, head, Buffer.from(rest.subarray(end + 4, end + 4 + length)));
      rest = rest.subarray(end + 4 + length);
      answer(socket);
    }
  });
}

function books(secretToken: string, withRequests: boolean): Books {
  const { count, from, until } = expected;
  const latencies: number[] = new Array(count).fill(Number.NaN);
  const lastOf = new Map<string, number>();
  const requests: Array<readonly [path: string, body: string]> = [];
  let [distinct, wrongSignatures, disordered] = [0, 0, 0];
  for (const { at, head, body } of arrivals) {
    const signature = /^x-service-signature: *(\S+)/im.exec(head)?.[1];
    const right = createHmac('sha256', secretToken).update(body).digest('hex');
    if (signature !== right) wrongSignatures++;
    const { message } = JSON.parse(body.toString());
    const chat = `${pathOf(head)} ${message.chat.id}`;
    if (message.message_id < (lastOf.get(chat) ?? 0)) disordered++;
    lastOf.set(chat, message.message_id);
    const [number, due] = (message.text as string).split(' ', 2).map(Number) as [number, number];
    if (!Number.isNaN(latencies[number])) continue;
    if (number < count) distinct++;
    latencies[number] = at - due;
    if (withRequests) requests[number] = [pathOf(head), body.toString()];
  }
  const [first, last] = [arrivals[from - 1]?.at ?? 0, arrivals[until - 1]?.at ?? 0];
  return {
    kind: 'books',
    arrived: arrivals.length,
    ...{ distinct, wrongSignatures, disordered, latencies },
    rate: (until - from) / ((last - first) / 1_000),
    connections: new Set(arrivals.slice(from, until).map(({ socket }) => socket)).size,
    ...(withRequests ? { requests } : {}),
  };
}

const pathOf = (head: string) => head.split(' ', 2)[1] ?? '';

process.once('message', ({ certificate, secretToken }: ReceiverTask) => {
  const server = createServer({ ...certificate, ALPNProtocols: ['http/1.1'] }, receive);
  server.on('tlsClientError', () => undefined);
  process.on('message', (ask: ReceiverAsk) => {
    if (ask.kind === 'tell') return say(books(secretToken, ask.requests));
    expected = ask;
    arrivals = [];
    held = ask.connections > 0 ? [] : null;
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 }, () => {
    const address = server.address();
    say({ kind: 'listening', port: typeof address === 'object' && address ? address.port : 0 });
  });
});
process.once('disconnect', () => process.exit(0));

/** Sends one request over a new connection, and reports the steps of the exchange. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Time } from '../../time.js';
import type { Outcome } from '../outcome.js';
import { Answer } from './answer.js';
import { Connections } from './connections.js';
import { dial } from './dial.js';
import { tlsFault } from './faults.js';
import type { Guard } from './guard.js';
import type { Receiver } from './send.js';
import type { Headers } from './sign.js';
import { trustIn } from './trust.js';

/** The duration of each step in ms. A step that was not completed has no duration. */
export interface StepTimes {
  readonly resolve?: number;
  readonly connect?: number;
  readonly tls?: number;
  readonly answer?: number;
}

export interface Exchange {
  readonly outcome: Outcome;
  readonly times: StepTimes;
  /** The headers of the answer, with names in lower case. Empty if there was no answer. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
}

export interface ExchangeOptions {
  readonly guard: Guard;
  readonly time: Time;
  /** The time limit of all steps together, in ms. */
  readonly deadlineMs: number;
  /** If set, the exchange reads a resource with GET. Otherwise it sends a body with POST. */
  readonly reads?: Reading;
}

export interface Reading {
  /** The maximum size of the body. A longer body is truncated. */
  readonly bytesMax: number;
  /** Returns whether to read the body of this answer. */
  readonly wanted: (status: number, headers: IncomingHttpHeaders) => boolean;
}

class HeadedAnswer extends Answer {
  headers: IncomingHttpHeaders = {};
  readonly #wanted: Reading['wanted'] | undefined;

  constructor(reads: Reading | undefined, ...rest: ConstructorParameters<typeof Answer>) {
    super(...rest);
    this.#wanted = reads?.wanted;
  }

  override onResponseStart(controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.headers = headers;
    super.onResponseStart(controller, status, headers);
    if (status >= 200 && this.#wanted?.(status, headers) === false) this.stop();
  }
}

const listed = (headers: IncomingHttpHeaders) =>
  Object.entries(headers).flatMap(([name, value = []]) =>
    [value].flat().map((each) => [name, each] as const),
  );

const getOf = (path: string, headers: Headers) => ({ method: 'GET' as const, path, headers, body: null });

/**
 * Sends a request and waits for the answer, under the rules of `Sender.send`. Never resumes a TLS session, so that the
 * certificate is always verified. Never throws.
 */
export async function exchange(
  { key, target, certificate }: Receiver,
  headers: Headers,
  body: Buffer,
  { guard, time, deadlineMs, reads }: ExchangeOptions,
): Promise<Exchange> {
  const times: { -readonly [K in keyof StepTimes]: StepTimes[K] } = {};
  let lastMs = time.monotonic();
  const done = (step: keyof StepTimes) => {
    const nowMs = time.monotonic();
    times[step] = nowMs - lastMs;
    lastMs = nowMs;
  };
  let connectedTo = '';
  const open = async () => {
    try {
      const reached = (step: 'resolved' | 'connected') => done(step === 'resolved' ? 'resolve' : 'connect');
      const trust = trustIn(certificate);
      const { socket, address } = await dial({
        ...{ key, target, trust, guard, time, reached },
        connectMs: deadlineMs,
      });
      done('tls');
      connectedTo = address;
      return socket;
    } catch (error) {
      throw tlsFault(error);
    }
  };
  const { origin, path } = target;
  const connections = new Connections({ origin, max: 1, open, busy: () => false, time });
  let answer: HeadedAnswer | undefined;
  const outcome = await new Promise<Outcome>((resolve) => {
    answer = new HeadedAnswer(
      reads,
      time,
      deadlineMs,
      () => connectedTo,
      () => true,
      resolve,
      reads?.bytesMax,
    );
    const request = reads === undefined ? { path, headers, body } : getOf(path, headers);
    connections.send(request, answer);
  });
  const isAnswered = outcome.kind === 'answered';
  if (isAnswered) done('answer');
  await connections.destroy();
  return { outcome, times, headers: isAnswered && answer ? listed(answer.headers) : [] };
}

/**
 * Exports OpenTelemetry traces: request → scripts → event → delivery. Loaded only if traces are turned on. A trace is
 * made when its request ends. Its id is derived from the change that the request made (chat, message and edit). Every
 * process that delivers the change derives the same id, so Redis need not store it, and all processes choose the same
 * traces to keep. Requests that changed no message get a random id. Decision 0023 says why this is not the OpenTelemetry
 * SDK.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { type Random, systemRandom } from '../random.js';
import { systemTime, type Time, type Timer } from '../time.js';

type Attributes = Readonly<Record<string, string | number>>;

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** The kind of the span in OTLP: 1 internal, 2 server, 3 client. */
  readonly kind: 1 | 2 | 3;
  /** Unix time in ms. */
  readonly beginMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly failed?: boolean;
}

interface Under {
  readonly beginMs: number;
  readonly scripts: Array<{ readonly name: string; readonly beginMs: number; readonly endMs: number }>;
  /** The name of the change. Absent until the request has made a change. */
  change: string | null;
}

export interface TracesOptions {
  /** This URL accepts OTLP over HTTP as JSON, for example `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  /** The share of traces to keep, from 0 to 1. */
  readonly ratio: number;
  readonly role: string;
  readonly version: string;
  readonly onError: (error: unknown) => void;
  readonly time?: Time;
  readonly random?: Random;
}

export interface TracedDelivery {
  readonly bot: number;
  readonly kind: string;
  readonly change: string;
  /** Unix time in ms. */
  readonly madeMs: number;
  readonly latencyMs: number;
  readonly tries: number;
  /** An HTTP status, or the reason why there was no answer. */
  readonly outcome: string;
  readonly delivered: boolean;
}

const waitingMax = 4_096;
const sendMs = 1_000;
const sendMsMax = 5_000;

/**
 * Returns the name of a change. It contains the store's name of the chat, the message id, and the edit time in seconds
 * (0 if never edited).
 */
export const changeName = (chat: string, message: number, editedS: number): string =>
  `${chat}|${message}|${editedS}`;

function idsOf(random: Random, change: string | null): { readonly traceId: string; readonly root: string } {
  const bytes = change === null ? random.bytes(24) : createHash('sha256').update(change).digest();
  return { traceId: bytes.toString('hex', 0, 16), root: bytes.toString('hex', 16, 24) };
}

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));

/** Converts a span to OTLP JSON. Times are nanoseconds as decimal text. */
const wireOf = ({ beginMs, endMs, attributes, failed, ...span }: Span) => ({
  ...span,
  startTimeUnixNano: `${Math.round(beginMs * 1_000)}000`,
  endTimeUnixNano: `${Math.round(endMs * 1_000)}000`,
  attributes: attributesOf(attributes),
  status: failed ? { code: 2 } : {},
});

/** Builds the spans of one trace that ends now. */
interface SpanContext {
  readonly traceId: string;
  readonly root: string;
  readonly endMs: number;
  readonly spanId: () => string;
}

function spansOfRequest(
  { traceId, root, endMs, spanId }: SpanContext,
  { beginMs, scripts }: Under,
  call: string,
  status: number,
): Span[] {
  return [
    {
      traceId,
      spanId: root,
      name: `request ${call}`,
      kind: 2,
      beginMs,
      endMs,
      attributes: { 'petrel.call': call, 'http.response.status_code': status },
      failed: status >= 500,
    },
    ...scripts.map(
      ({ name, beginMs, endMs }): Span => ({
        traceId,
        spanId: spanId(),
        parentSpanId: root,
        name: `script ${name}`,
        kind: 3,
        beginMs,
        endMs,
        attributes: { 'db.system': 'redis', 'petrel.script': name },
      }),
    ),
  ];
}

function spansOfDelivery({ traceId, root, endMs, spanId }: SpanContext, delivery: TracedDelivery): Span[] {
  const { bot, kind, change, madeMs, latencyMs, tries, outcome, delivered } = delivery;
  // Returns the id of the bot's own event span. The first attempt reports this span. Retries become its children.
  const event = createHash('sha256').update(`${change}|${kind}|${bot}`).digest().toString('hex', 0, 8);
  const attempt: Span = {
    traceId,
    spanId: spanId(),
    parentSpanId: event,
    name: 'delivery',
    kind: 3,
    beginMs: endMs - latencyMs,
    endMs,
    failed: !delivered,
    attributes: { 'petrel.bot': bot, 'petrel.tries': tries, 'petrel.outcome': outcome },
  };
  if (tries !== 1) return [attempt];
  const waited: Span = {
    traceId,
    spanId: event,
    parentSpanId: root,
    name: `event ${kind}`,
    kind: 1,
    beginMs: madeMs,
    endMs: Math.max(madeMs, endMs - latencyMs),
    attributes: { 'petrel.bot': bot },
  };
  return [waited, attempt];
}

/** Collects traces. Spans wait in memory and are sent once a second. */
export class Traces {
  readonly #options: TracesOptions;
  readonly #requests = new AsyncLocalStorage<Under>();
  #waiting: Span[] = [];
  readonly #time: Time;
  readonly #random: Random;
  /** The Unix time in ms at which the monotonic clock was 0. Spans need fractions of a millisecond. */
  readonly #originMs: number;
  readonly #timer: Timer;

  constructor(options: TracesOptions) {
    const { time = systemTime, random = systemRandom } = options;
    this.#options = options;
    this.#time = time;
    this.#random = random;
    this.#originMs = time.machine() - time.monotonic();
    this.#timer = time.every(sendMs, () => void this.#send()).unref();
  }

  #nowMs(): number {
    return this.#originMs + this.#time.monotonic();
  }

  within<T>(work: () => T): T {
    return this.#requests.run({ beginMs: this.#nowMs(), scripts: [], change: null }, work);
  }

  changed(change: string): void {
    const under = this.#requests.getStore();
    if (under) under.change = change;
  }

  script(name: string, ms: number): void {
    const endMs = this.#nowMs();
    this.#requests.getStore()?.scripts.push({ name, beginMs: endMs - ms, endMs });
  }

  over(call: string, status: number): void {
    const under = this.#requests.getStore();
    if (under) this.#add(under.change, (context) => spansOfRequest(context, under, call, status));
  }

  delivery(delivery: TracedDelivery): void {
    this.#add(delivery.change, (context) => spansOfDelivery(context, delivery));
  }

  async stop(): Promise<void> {
    this.#time.cancel(this.#timer);
    await this.#send();
  }

  /**
   * Adds the spans of a trace that is kept. Drops them if too many are pending, because nothing may wait for traces.
   */
  #add(change: string | null, spansOf: (context: SpanContext) => readonly Span[]): void {
    const { traceId, root } = idsOf(this.#random, change);
    if (Number.parseInt(traceId.slice(0, 8), 16) / 2 ** 32 >= this.#options.ratio) return;
    const spanId = () => this.#random.bytes(8).toString('hex');
    const spans = spansOf({ traceId, root, endMs: this.#nowMs(), spanId });
    if (this.#waiting.length + spans.length <= waitingMax) this.#waiting.push(...spans);
  }

  async #send(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const { url, role, version, onError } = this.#options;
    const spans = this.#waiting.map(wireOf);
    this.#waiting = [];
    const attributes = attributesOf({
      'service.name': 'petrel',
      'service.version': version,
      'petrel.role': role,
      'process.pid': process.pid,
    });
    const scopeSpans = [{ scope: { name: 'petrel' }, spans }];
    try {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ resourceSpans: [{ resource: { attributes }, scopeSpans }] }),
        signal: this.#time.deadline(sendMsMax),
      });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`the collector refused traces with ${answer.status}`);
    } catch (error) {
      onError(error);
    }
  }
}

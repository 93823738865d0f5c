/**
 * Exports OpenTelemetry traces: request → scripts → event → delivery. Loaded only if traces are turned on.
 *
 * A trace is created when its request ends. Its id is derived from the change that the request made (chat, message and
 * edit). Every process that delivers the change derives the same id. Redis thus need not store the id, and all
 * processes keep the same traces. A request that changed no message gets a random id.
 *
 * If a known caller sends the header `traceparent`, the request is also a span of the caller's trace. A bot's answer to
 * an update thus joins the trace of the update. Decision 0023 says why Petrel does not use the OpenTelemetry SDK.
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
  /** The span's kind in OTLP: 1 is internal, 2 is server, 3 is client. */
  readonly kind: 1 | 2 | 3;
  /** The Unix times in ms at which the span began and ended. */
  readonly beginMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly failed?: boolean;
  /** Spans of other traces that describe the same work. */
  readonly links?: readonly Parent[];
}

/** A span of another process. */
interface Parent {
  readonly traceId: string;
  readonly spanId: string;
}

interface Under {
  /** The span that the request's header `traceparent` names. Any client can send this header. */
  readonly parent: Parent | undefined;
  /** Returns whether the request's caller is known. */
  readonly isKnown: () => boolean;
  readonly beginMs: number;
  readonly scripts: Array<{ readonly name: string; readonly beginMs: number; readonly endMs: number }>;
  /** The name of the message change that the request made (see `changeName`), or null before the change. */
  change: string | null;
}

export interface TracesOptions {
  /** A URL that accepts OTLP over HTTP as JSON, for example `http://127.0.0.1:4318/v1/traces`. */
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
  /** The Unix time in ms at which the update was created. */
  readonly madeMs: number;
  readonly latencyMs: number;
  readonly tries: number;
  /** An HTTP status, or the reason why there was no answer. */
  readonly outcome: string;
  readonly delivered: boolean;
}

const waitingMax = 4_096;
/**
 * How many pending spans may belong to traces whose ids come from callers. Without this limit, a caller could fill the
 * memory by sending only ids of traces that Petrel keeps.
 */
const joinedWaitingMax = waitingMax / 4;
/**
 * How many scripts of one request get a span. The limit is needed because a stream, which is one request, may run
 * scripts for days.
 */
const scriptsMax = 100;
const sendMs = 1_000;
const sendMsMax = 5_000;

/**
 * Returns the name of a message change. The name consists of the chat's name in the store, the message id, and the time
 * of the edit in seconds (0 if the message was never edited).
 */
export const changeName = (chat: string, message: number, editedS: number): string =>
  `${chat}|${message}|${editedS}`;

/**
 * Parses the header `traceparent` of W3C Trace Context. Returns undefined if it is malformed or if the caller does not
 * keep the trace.
 */
function parentOf(header: string): Parent | undefined {
  const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f][13579bdf]$/.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return;
  return { traceId, spanId };
}

/**
 * Returns the id of a bot's event span. The first delivery attempt sends this span. The spans of retries are its
 * children.
 */
const eventSpan = (change: string, kind: string, bot: number): string =>
  createHash('sha256').update(`${change}|${kind}|${bot}`).digest().toString('hex', 0, 8);

function idsOf(random: Random, change: string | null): { readonly traceId: string; readonly root: string } {
  const bytes = change === null ? random.bytes(24) : createHash('sha256').update(change).digest();
  return { traceId: bytes.toString('hex', 0, 16), root: bytes.toString('hex', 16, 24) };
}

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));

/** Converts a span to OTLP JSON. Times are decimal texts in nanoseconds. */
const wireOf = ({ beginMs, endMs, attributes, failed, ...span }: Span) => ({
  ...span,
  startTimeUnixNano: `${Math.round(beginMs * 1_000)}000`,
  endTimeUnixNano: `${Math.round(endMs * 1_000)}000`,
  attributes: attributesOf(attributes),
  status: failed ? { code: 2 } : {},
});

/** The data that the spans of one trace share. `endMs` is the present time. */
interface SpanContext {
  readonly traceId: string;
  readonly root: string;
  readonly endMs: number;
  readonly spanId: () => string;
}

interface RequestFacts {
  readonly call: string;
  readonly status: number;
  readonly parentSpanId?: string;
  readonly links?: readonly Parent[];
}

function spansOfRequest(
  { traceId, root, endMs, spanId }: SpanContext,
  { beginMs, scripts }: Under,
  { call, status, ...relations }: RequestFacts,
): Span[] {
  return [
    {
      ...relations,
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
  const event = eventSpan(change, kind, bot);
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

/** Collects traces. Keeps spans in memory and sends them once a second. */
export class Traces {
  readonly #options: TracesOptions;
  readonly #requests = new AsyncLocalStorage<Under>();
  #waiting: Span[] = [];
  #joinedWaiting = 0;
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

  /**
   * Runs `work` as a request. `traceparent` is the request's header, or ''. `isKnown` is called when the request ends,
   * and says whether its caller is known.
   */
  within<T>(traceparent: string, isKnown: () => boolean, work: () => T): T {
    const parent = parentOf(traceparent);
    return this.#requests.run({ parent, isKnown, beginMs: this.#nowMs(), scripts: [], change: null }, work);
  }

  /** Returns the header `traceparent` of a delivery. Undefined if its trace is not kept. */
  traceparent(bot: number, kind: string, change: string): string | undefined {
    const { traceId } = idsOf(this.#random, change);
    return this.#isKept(traceId) ? `00-${traceId}-${eventSpan(change, kind, bot)}-01` : undefined;
  }

  /** Records that a poll returned an update. Returns the header `traceparent`. Undefined if the trace is not kept. */
  polled(bot: number, kind: string, change: string): string | undefined {
    const header = this.traceparent(bot, kind, change);
    if (header === undefined) return undefined;
    this.#add(idsOf(this.#random, change), ({ traceId, root, endMs }) => [
      {
        ...{ traceId, spanId: eventSpan(change, kind, bot), parentSpanId: root, name: `event ${kind}` },
        ...{ kind: 1, beginMs: endMs, endMs, failed: false },
        attributes: { 'petrel.bot': bot },
      },
    ]);
    return header;
  }

  changed(change: string): void {
    const under = this.#requests.getStore();
    if (under) under.change = change;
  }

  script(name: string, ms: number): void {
    const scripts = this.#requests.getStore()?.scripts;
    if (scripts === undefined || scripts.length >= scriptsMax) return;
    const endMs = this.#nowMs();
    scripts.push({ name, beginMs: endMs - ms, endMs });
  }

  over(call: string, status: number): void {
    const under = this.#requests.getStore();
    if (under === undefined) return;
    const { change } = under;
    const mayJoin = under.isKnown() && this.#joinedWaiting < joinedWaitingMax;
    const parent = mayJoin ? under.parent : undefined;
    const own = change === null && parent !== undefined ? undefined : idsOf(this.#random, change);
    const joined = parent && { traceId: parent.traceId, root: this.#random.bytes(8).toString('hex') };
    const link = (ids: typeof own) => ids && [{ traceId: ids.traceId, spanId: ids.root }];
    if (own) {
      const links = link(joined) ?? [];
      this.#add(own, (context) => spansOfRequest(context, under, { call, status, links }));
    }
    if (parent && joined) {
      const facts = { call, status, parentSpanId: parent.spanId, links: link(own) ?? [] };
      this.#joinedWaiting += this.#add(joined, (context) => spansOfRequest(context, under, facts));
    }
  }

  delivery(delivery: TracedDelivery): void {
    this.#add(idsOf(this.#random, delivery.change), (context) => spansOfDelivery(context, delivery));
  }

  async stop(): Promise<void> {
    this.#time.cancel(this.#timer);
    await this.#send();
  }

  #isKept(traceId: string): boolean {
    return Number.parseInt(traceId.slice(0, 8), 16) / 2 ** 32 < this.#options.ratio;
  }

  /**
   * Adds the spans of a trace if it is kept. Drops them if too many spans are pending, because no request may wait for
   * traces. Returns how many were added.
   */
  #add(
    { traceId, root }: ReturnType<typeof idsOf>,
    spansOf: (context: SpanContext) => readonly Span[],
  ): number {
    if (!this.#isKept(traceId)) return 0;
    const spanId = () => this.#random.bytes(8).toString('hex');
    const spans = spansOf({ traceId, root, endMs: this.#nowMs(), spanId });
    if (this.#waiting.length + spans.length > waitingMax) return 0;
    this.#waiting.push(...spans);
    return spans.length;
  }

  async #send(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const { url, role, version, onError } = this.#options;
    const spans = this.#waiting.map(wireOf);
    this.#waiting = [];
    this.#joinedWaiting = 0;
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

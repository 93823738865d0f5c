/**
 * OpenTelemetry traces: request → scripts → event → delivery. Loaded only when traces are on.
 *
 * A trace is made when its request ends. Its id is derived from the change that the request made: chat, message and
 * edit. Any process that delivers the change derives the same id, so Redis need not carry it, and all processes sample
 * the same traces. Requests that changed no message get a random id.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomBytes } from 'node:crypto';

type Attributes = Readonly<Record<string, string | number>>;

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** as in OTLP: 1 internal, 2 server, 3 client */
  readonly kind: 1 | 2 | 3;
  /** Unix time in ms */
  readonly beginMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly failed?: boolean;
}

interface Under {
  readonly beginMs: number;
  readonly scripts: Array<{ readonly name: string; readonly beginMs: number; readonly endMs: number }>;
  /** The name of the change, once known. */
  change: string | null;
}

export interface TracesOptions {
  /** URL that accepts OTLP over HTTP as JSON, for instance `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  /** Share of traces to keep, 0 to 1. */
  readonly ratio: number;
  readonly role: string;
  readonly version: string;
  readonly onError: (error: unknown) => void;
}

/** The outcome of a delivery attempt. */
export interface TracedDelivery {
  readonly bot: number;
  readonly kind: string;
  readonly change: string;
  /** Unix time in ms, when the update was made */
  readonly madeMs: number;
  readonly latencyMs: number;
  readonly tries: number;
  /** An HTTP status, or why there was no answer. */
  readonly outcome: string;
  readonly delivered: boolean;
}

export interface Traces {
  /** Runs a request and assigns its scripts to it. */
  within<T>(work: () => T): T;
  /** Records that the current request made this change. */
  changed(change: string): void;
  script(name: string, ms: number): void;
  /** Records that the current request has ended. */
  over(call: string, status: number): void;
  delivery(attempt: TracedDelivery): void;
  stop(): Promise<void>;
}

const waitingMax = 4_096;
const sendMs = 1_000;
const sendMsMax = 5_000;

/**
 * The name of a change: the chat as the store names it, the message id, and the edit time in seconds, 0 if never
 * edited.
 */
export const changeName = (chat: string, message: number, editedS: number): string =>
  `${chat}|${message}|${editedS}`;

const nowMs = () => performance.timeOrigin + performance.now();
const spanId = () => randomBytes(8).toString('hex');

function idsOf(change: string | null): { readonly traceId: string; readonly root: string } {
  const bytes = change === null ? randomBytes(24) : createHash('sha256').update(change).digest();
  return { traceId: bytes.toString('hex', 0, 16), root: bytes.toString('hex', 16, 24) };
}

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));

/** A span in OTLP JSON. Times are decimal text in nanoseconds. */
const wireOf = ({ beginMs, endMs, attributes, failed, ...span }: Span) => ({
  ...span,
  startTimeUnixNano: `${Math.round(beginMs * 1_000)}000`,
  endTimeUnixNano: `${Math.round(endMs * 1_000)}000`,
  attributes: attributesOf(attributes),
  status: failed ? { code: 2 } : {},
});

export function createTraces({ url, ratio, role, version, onError }: TracesOptions): Traces {
  const requests = new AsyncLocalStorage<Under>();
  let waiting: Span[] = [];
  const resource = {
    attributes: attributesOf({
      ...{ 'service.name': 'petrel', 'service.version': version, 'petrel.role': role },
      'process.pid': process.pid,
    }),
  };
  const isKept = (traceId: string) => Number.parseInt(traceId.slice(0, 8), 16) / 2 ** 32 < ratio;

  /** Drops spans when too many wait, because nothing may wait for traces. */
  function add(spans: readonly Span[]): void {
    if (waiting.length + spans.length <= waitingMax) waiting.push(...spans);
  }

  async function send(): Promise<void> {
    if (waiting.length === 0) return;
    const spans = waiting.map(wireOf);
    waiting = [];
    const scopeSpans = [{ scope: { name: 'petrel' }, spans }];
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] }),
      signal: AbortSignal.timeout(sendMsMax),
    });
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`the collector refused traces with ${answer.status}`);
  }

  const timer = setInterval(() => void send().catch(onError), sendMs);
  timer.unref();

  return {
    within: (work) => requests.run({ beginMs: nowMs(), scripts: [], change: null }, work),
    changed(change) {
      const under = requests.getStore();
      if (under) under.change = change;
    },
    script(name, ms) {
      const endMs = nowMs();
      requests.getStore()?.scripts.push({ name, beginMs: endMs - ms, endMs });
    },
    over(call, status) {
      const under = requests.getStore();
      if (!under) return;
      const { traceId, root } = idsOf(under.change);
      if (!isKept(traceId)) return;
      add([
        {
          ...{
            traceId,
            spanId: root,
            name: `request ${call}`,
            kind: 2,
            beginMs: under.beginMs,
            endMs: nowMs(),
          },
          attributes: { 'petrel.call': call, 'http.response.status_code': status },
          failed: status >= 500,
        },
        ...under.scripts.map(
          ({ name, beginMs, endMs }): Span => ({
            ...{
              traceId,
              spanId: spanId(),
              parentSpanId: root,
              name: `script ${name}`,
              kind: 3,
              beginMs,
              endMs,
            },
            attributes: { 'db.system': 'redis', 'petrel.script': name },
          }),
        ),
      ]);
    },
    delivery({ bot, kind, change, madeMs, latencyMs, tries, outcome, delivered }) {
      const { traceId, root } = idsOf(change);
      if (!isKept(traceId)) return;
      const endMs = nowMs();
      // Each bot has its own event span. Further attempts are children of the event that the first attempt reported.
      const event = createHash('sha256').update(`${change}|${kind}|${bot}`).digest().toString('hex', 0, 8);
      const waited: Span = {
        ...{ traceId, spanId: event, parentSpanId: root, name: `event ${kind}`, kind: 1 },
        ...{ beginMs: madeMs, endMs: Math.max(madeMs, endMs - latencyMs) },
        attributes: { 'petrel.bot': bot },
      };
      const attempt: Span = {
        ...{ traceId, spanId: spanId(), parentSpanId: event, name: 'delivery', kind: 3 },
        ...{ beginMs: endMs - latencyMs, endMs, failed: !delivered },
        attributes: { 'petrel.bot': bot, 'petrel.tries': tries, 'petrel.outcome': outcome },
      };
      add(tries === 1 ? [waited, attempt] : [attempt]);
    },
    async stop() {
      clearInterval(timer);
      await send().catch(onError);
    },
  };
}

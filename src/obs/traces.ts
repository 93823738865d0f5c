/**
 * OpenTelemetry traces: request → scripts → event → delivery. This module is loaded only where the setting asks for it.
 *
 * A trace is made when its request is over, and named after the change that came of it: the chat, the message and its edit. Whoever
 * delivers that change, in whichever process, knows these and so knows the trace: nothing is carried along in Redis for it, and all
 * processes sample the same traces. What changed no message has a random name.
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
  /** names the change, once it is known */
  change: string | null;
}

export interface TracesOptions {
  /** Where OTLP over HTTP is taken as JSON, for instance `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  /** Share of traces that are kept, 0 to 1. */
  readonly ratio: number;
  readonly role: string;
  readonly version: string;
  readonly onError: (error: unknown) => void;
}

/** What became of an attempt to deliver. */
export interface TracedDelivery {
  readonly bot: number;
  readonly kind: string;
  readonly change: string;
  /** Unix time in ms, when the update was made */
  readonly madeMs: number;
  readonly latencyMs: number;
  readonly tries: number;
  /** a status, or why there was no answer */
  readonly outcome: string;
  readonly delivered: boolean;
}

export interface Traces {
  /** Runs a request so that its scripts are known to be of it. */
  within<T>(work: () => T): T;
  /** The request that runs now made this change. */
  changed(change: string): void;
  script(name: string, ms: number): void;
  /** The request that runs now is over. */
  over(call: string, status: number): void;
  delivery(attempt: TracedDelivery): void;
  stop(): Promise<void>;
}

const waitingMax = 4_096;
const sendMs = 1_000;
const sendMsMax = 5_000;

/** Names a change: a chat as the store spells it, a message, and when it was edited in seconds, 0 for never. */
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

/** As OTLP spells it; times are decimal texts in nanoseconds. */
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

  /** What cannot be sent is lost: nobody waits for traces. */
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
    if (!answer.ok) throw new Error(`traces were refused with ${answer.status}`);
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
      // Each bot has an event of its own; further attempts hang on the one that the first attempt told of.
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

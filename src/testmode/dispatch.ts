/** Adds the test server's endpoints to a front, and records the calls of the bots in its worlds. */
import { STATUS_CODES } from 'node:http';
import { ApiError, fail } from '../errors.js';
import { envelope, refused, reply } from '../server/call_context.js';
import type { Dispatch } from '../server/dispatch.js';
import type { Outcome } from '../server/idempotency.js';
import { parseWith } from '../server/method.js';
import { type Params, parseParams, type UploadedFile } from '../server/params.js';
import type { ApiRequest } from '../server/request.js';
import { createRouter } from '../server/router.js';
import { Passed, type TestContext, testEndpoints } from './endpoints.js';
import type { Fault } from './faults.js';
import type { NewEntry } from './recording.js';
import type { World } from './worlds.js';

const testPath = '/api/test/';

/** Returns the bot's id in the path of a call, or 0. */
const botIn = (path: string) => Number(/^\/bot(\d{1,16})(?::|%3[Aa])/.exec(path)?.[1] ?? 0);

/** Returns the names and sizes of uploaded files. */
const sizesOf = (files: ReadonlyMap<string, UploadedFile>) =>
  Object.fromEntries(
    [...files].map(([name, { filename, bytes }]) => [name, { filename, bytes: bytes.length }]),
  );

/** Returns the parameters of a call, with the size of each file, or null if they cannot be parsed. */
function paramsOf(request: ApiRequest): Params | null {
  try {
    const { values, files } = parseParams(request);
    return { ...values, ...sizesOf(files) };
  } catch {
    return null;
  }
}

/** Wraps a request so that `answer` gets its JSON reply. */
function withReply(request: ApiRequest, answer: (outcome: Outcome) => void): ApiRequest {
  const watched: ApiRequest['reply'] = (status, body, retryAfter) =>
    answer({ status, body: body.toString(), retryAfter });
  return new Proxy(request, {
    get(target, name) {
      if (name === 'reply') return watched;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Returns the answer with which a fault replaces the real answer. */
function faultAnswer({ status = 500, retry_after = 1 }: Fault): Outcome {
  if (status === 429) return refused(new ApiError('too_many_requests', { retry_after }));
  const body = { ok: false, error_code: status, description: STATUS_CODES[status] ?? 'Error' };
  return { status, body: JSON.stringify(body), retryAfter: undefined };
}

export function createTestDispatch(inner: Dispatch, context: Omit<TestContext, 'given' | 'form'>): Dispatch {
  const { worlds, recording, faults, time, methodNamed } = context;
  const find = createRouter(testEndpoints);

  async function answerTest(request: ApiRequest): Promise<void> {
    const match = find(request.method, request.path);
    if (match === null) return fail('not_found');
    if (match === 'other_verb') return fail('method_not_allowed');
    const { endpoint, segments } = match;
    request.called = endpoint.path;
    const { values, files } = parseParams(request);
    const params = parseWith(endpoint.params, { ...values, ...segments });
    const { contentType, body } = request;
    const form = files.size > 0 ? { contentType, body } : undefined;
    const given = { ...values, ...sizesOf(files) };
    const result = await endpoint.handler({ ...context, given, form }, params as never);
    if (result instanceof Passed) reply(request, result.outcome);
    else request.reply(200, envelope(result));
  }

  async function callBot(world: World, request: ApiRequest): Promise<void> {
    const params = paramsOf(request);
    const method = methodNamed(request.path.slice(request.path.lastIndexOf('/') + 1))?.name ?? '';
    const fault = faults.take(world.id, method);
    if (fault !== undefined) await time.sleep(fault.delay_ms);
    const replacement = fault?.status === undefined ? undefined : faultAnswer(fault);
    const answer = (real: Outcome | undefined) => {
      const outcome = replacement ?? (real as Outcome);
      const entry: NewEntry = {
        kind: 'call',
        name: method || request.called,
        params,
        status: outcome.status,
        answer: JSON.parse(outcome.body),
        ...(replacement && { fault: real === undefined ? 'not done' : 'answer lost' }),
      };
      if (outcome.status !== 401) recording.add(world.id, entry);
      reply(request, outcome);
    };
    if (replacement !== undefined && !fault?.applied) return answer(undefined);
    try {
      await inner.handle(withReply(request, answer));
    } catch (error) {
      answer(refused(error));
    }
  }

  return {
    handle(request) {
      if (request.path.startsWith(testPath)) return answerTest(request);
      const world = worlds.ofBot(botIn(request.path));
      return world === undefined ? inner.handle(request) : callBot(world, request);
    },
    admit: (request) => (request.path.startsWith(testPath) ? false : inner.admit(request)),
  };
}

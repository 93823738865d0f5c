/** Calls the application API inside this process, with the same checks as over HTTP. */
import { fail } from '../errors.js';
import { refused } from '../server/call_context.js';
import type { Dispatch } from '../server/dispatch.js';
import type { Outcome } from '../server/idempotency.js';
import type { ApiRequest } from '../server/request.js';

export interface InnerCall {
  readonly verb: string;
  readonly path: string;
  readonly token: string;
  readonly params?: Readonly<Record<string, unknown>>;
  /** A form with files, which is sent instead of `params`. */
  readonly form?: Pick<ApiRequest, 'contentType' | 'body'> | undefined;
}

/** Builds a call's request. `resolve` gets the JSON reply. Any other kind of reply is refused. */
function requestOf(call: InnerCall, resolve: (outcome: Outcome) => void): ApiRequest {
  const { verb, path, token, params = {}, form } = call;
  const isGet = verb === 'GET';
  const query = isGet
    ? new URLSearchParams(
        Object.entries(params).map(([name, value]): [string, string] => [
          name,
          typeof value === 'object' ? JSON.stringify(value) : String(value),
        ]),
      ).toString()
    : '';
  const absent = {
    lastEventId: '',
    idempotencyKey: '',
    coalesce: '',
    consumer: '',
    consumerTimeout: '',
    forwardedFor: '',
    prefer: '',
    cookie: '',
    userAgent: '',
    traceparent: '',
    requestId: '',
    host: '',
  };
  const noForms = {
    acceptedTypes: '',
    acceptEncoding: '',
    acceptLanguage: '',
    range: '',
    ifRange: '',
    ifNoneMatch: '',
  };
  return {
    ...absent,
    ...noForms,
    method: verb,
    path,
    query,
    contentType: form?.contentType ?? 'application/json',
    authorization: `Bearer ${token}`,
    handover: false,
    keyId: '',
    signature: '',
    called: '',
    calledBy: 0,
    answerTraceparent: '',
    body: form?.body ?? (isGet ? Buffer.alloc(0) : Buffer.from(JSON.stringify(params))),
    remoteAddress: '127.0.0.1',
    aborted: false,
    onAbort: () => undefined,
    reply: (status, body, retryAfter) => resolve({ status, body: body.toString(), retryAfter }),
    replyWith: () => fail('bad_request'),
    replyStream: ({ body }) => {
      body?.destroy();
      fail('bad_request');
    },
    openStream: () => fail('bad_request'),
  };
}

/** Runs a call and returns its answer. Rejects only for unexpected errors. */
export function innerCall(dispatch: Dispatch, call: InnerCall): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const handled = async () => dispatch.handle(requestOf(call, resolve));
    handled().catch((error: unknown) => {
      try {
        resolve(refused(error));
      } catch (unexpected) {
        reject(unexpected);
      }
    });
  });
}

/** Returns the result of a call. Rejects if the call is refused. */
export async function innerResult(dispatch: Dispatch, call: InnerCall): Promise<unknown> {
  const { status, body } = await innerCall(dispatch, call);
  if (status !== 200) throw new Error(`${call.verb} ${call.path} answered ${status} ${body}`);
  return JSON.parse(body).result;
}

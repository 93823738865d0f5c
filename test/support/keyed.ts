/**
 * Runs one call with an idempotency key on nodes in this process. Stops the first node at a step, and then makes the
 * call again on another node.
 */
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import type { DispatchOptions } from '../../src/server/call_context.js';
import { createDispatch } from '../../src/server/dispatch.js';
import type { ApiRequest } from '../../src/server/request.js';
import { type TestNode, within } from './store.js';

/** The caller. A bot calls a method, and a person calls an endpoint such as `POST /api/chats`. */
export interface Caller {
  readonly token: string;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

/**
 * The uploaded parts of a call by name, and the file store. If these are absent, the call has no files. `prefer` is the
 * header `Prefer`, and `durable` is the setting DURABLE. `onAbort` gets the listener for a lost connection.
 */
export interface Upload {
  readonly files?: DispatchOptions['files'];
  readonly parts?: Readonly<Record<string, string>>;
  readonly prefer?: string;
  readonly durable?: boolean;
  readonly onAbort?: ApiRequest['onAbort'];
}

const boundary = 'part';

function multipart(params: object, parts: Readonly<Record<string, string>>): Buffer {
  const head = (name: string, more = '') =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
  const fields = Object.entries(params).map(
    ([name, value]) => `${head(name)}${typeof value === 'string' ? value : JSON.stringify(value)}\r\n`,
  );
  const files = Object.entries(parts).map(
    ([name, bytes]) => `${head(name, `; filename="${name}.jpg"`)}${bytes}\r\n`,
  );
  return Buffer.from(`${fields.join('')}${files.join('')}--${boundary}--\r\n`);
}

const noFiles = {} as DispatchOptions['files'];

/** Returns the reply of a node. Rejects with the error that the handler throws. */
export function call(
  node: TestNode,
  caller: Caller,
  method: string,
  params: object,
  key: string,
  { files = noFiles, parts, prefer = '', durable = false, onAbort = () => undefined }: Upload = {},
): Promise<Reply> {
  const { handle } = createDispatch({
    methods,
    endpoints,
    store: node.store,
    files,
    receivers: {} as DispatchOptions['receivers'],
    adminToken: undefined,
    durable,
    own: {},
  });
  const [verb, path] = method.includes(' ') ? method.split(' ') : ['POST', `/bot${caller.token}/${method}`];
  return new Promise((resolve, reject) => {
    const request: ApiRequest = {
      ...{ method: verb as string, path: path as string, query: '' },
      contentType: parts ? `multipart/form-data; boundary=${boundary}` : 'application/json',
      ...{
        authorization: `Bearer ${caller.token}`,
        lastEventId: '',
        idempotencyKey: key,
        prefer,
        ...{ cookie: '', userAgent: '' },
        traceparent: '',
        coalesce: '',
        consumer: '',
        consumerTimeout: '',
        ...{ range: '', ifRange: '', ifNoneMatch: '', forwardedFor: '', keyId: '', signature: '' },
        ...{
          called: '',
          calledBy: 0,
          answerTraceparent: '',
          host: 'localhost',
          acceptEncoding: '',
          acceptedTypes: '',
          acceptLanguage: '',
        },
        remoteAddress: '127.0.0.1',
        requestId: '',
        handover: false,
        aborted: false,
      },
      body: parts ? multipart(params, parts) : Buffer.from(JSON.stringify(params)),
      onAbort,
      reply: (status, body) => resolve({ status, body: body.toString() }),
      replyWith: () => reject(new Error('no JSON')),
      replyStream: () => reject(new Error('no JSON')),
      openStream: () => {
        throw new Error('no stream');
      },
    };
    Promise.resolve(handle(request)).catch(reject);
  });
}

const never = new Promise<never>(() => undefined);

export async function outwait({ connection: { client } }: TestNode): Promise<void> {
  for (const key of await client.keys('*:idempotency:*'))
    if (await client.hexists(key, 'u')) await client.hset(key, 'u', 0);
}

/**
 * Stops a node permanently at a call to a script, before or after the script ran. `died` is true after the node has
 * stopped.
 */
export function dieAt(node: TestNode, script: string, when: 'before' | 'after') {
  const state = { died: false };
  node.hooks.call = async (name, run) => {
    if (name !== script) return run();
    if (when === 'after') await run();
    state.died = true;
    return never;
  };
  return state;
}

/**
 * Stops a node during one call: after the work of the call is done, but before the answer is recorded. Afterwards the
 * node works again.
 */
export async function dieUnnoted(node: TestNode, run: () => Promise<unknown>): Promise<void> {
  const state = dieAt(node, 'idempotency/settle', 'before');
  const running = run();
  for (let waited = 0; !state.died && waited < 5_000; waited += 10) await within(10, running);
  node.hooks.call = (_, next) => next();
  if (!state.died) throw new Error('the call did not come to its answer');
  await outwait(node);
}

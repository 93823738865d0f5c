/**
 * Calls every method and endpoint with generated parameters, in every encoding, and checks the rules that hold for all
 * answers.
 */
import { Pool } from 'undici';
import { expect } from 'vitest';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import { holdEndpoint, holdMethod } from '../support/results.js';
import type { Answer, Service } from '../support/service.js';
import { answered } from '../support/service_calls.js';
import { type Given, type Json, type Shape, shapeOf } from './garbage_values.js';

export interface Target {
  readonly name: string;
  readonly caller: 'bot' | 'user' | 'admin';
  readonly verb: string;
  /** The path of an endpoint, where `{name}` stands for a segment. Null if the call is a bot method. */
  readonly path: string | null;
  readonly shape: Shape;
  readonly deaf: boolean;
  readonly other: boolean;
}

export const targets: readonly Target[] = [
  ...methods.map(
    ({ name, params, events }): Target => ({
      ...{ name, caller: 'bot', verb: 'POST', path: null, other: events !== undefined },
      shape: params === null ? {} : shapeOf(params),
      deaf: params === null,
    }),
  ),
  ...endpoints.map(
    ({ verb, path, caller, params, contentType }): Target => ({
      // All endpoints except those for operators are called with a person's token. Without a signature, partner
      // endpoints then answer as if they did not exist. Endpoints that need no token ignore the token.
      ...{ name: `${verb} ${path}`, caller: caller === 'admin' ? caller : 'user', verb, path, deaf: false },
      shape: shapeOf(params),
      other: contentType !== undefined,
    }),
  ),
];

export const forms = ['query', 'json', 'urlencoded', 'multipart', 'split', 'labelled'] as const;
type Form = (typeof forms)[number];

export interface Case {
  readonly target: string;
  readonly params: Given;
  readonly form: Form;
  readonly files?: boolean;
  /** Bytes to send instead of the encoded parameters. Each character stands for one byte (latin1). */
  readonly raw?: string;
  readonly contentType?: string;
  readonly token?: string;
  readonly idempotencyKey?: string;
}

const byName = new Map(targets.map((target) => [target.name, target]));

/** Encodes as UTF-8. A lone surrogate becomes three bytes that every decoder refuses. */
function bytesOf(text: string): Buffer {
  const parts = text.split(/(\p{Surrogate})/u).map((part) => {
    const code = part.charCodeAt(0);
    return part.length === 1 && code >= 0xd800 && code <= 0xdfff
      ? Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63)])
      : Buffer.from(part, 'utf8');
  });
  return Buffer.concat(parts);
}

const escaped = (text: string) =>
  [...bytesOf(text)]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[\w.~-]/.test(char) ? char : `%${byte.toString(16).padStart(2, '0')}`;
    })
    .join('');

export const asText = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value));

const asForm = (params: Given) =>
  Object.entries(params)
    .map(([name, value]) => `${escaped(name)}=${escaped(asText(value))}`)
    .join('&');

function asMultipart(params: Given, files: boolean): Buffer {
  const parts = Object.entries(params).flatMap(([name, value], i) => [
    Buffer.from('--b\r\nContent-Disposition: form-data; name="'),
    bytesOf(name.replace(/[\r\n"]/g, '_')),
    Buffer.from(`"${files && i % 3 === 2 ? '; filename="f.bin"' : ''}\r\n\r\n`),
    bytesOf(asText(value)),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...parts, Buffer.from('--b--\r\n')]);
}

/** The maximum size of a query. A longer query would not fit into the request head together with the headers. */
const query_chars_max = 6_000;

interface Encoded {
  readonly query: string;
  readonly body: Buffer | null;
  readonly contentType: string;
}

function encode({ params, form, files = false, raw, contentType }: Case, verb: string): Encoded {
  if (raw !== undefined)
    return { query: '', body: Buffer.from(raw, 'latin1'), contentType: contentType ?? 'application/json' };
  const names = Object.keys(params);
  const half = names.length >> 1;
  const pick = (from: number, to: number) =>
    Object.fromEntries(names.slice(from, to).map((name) => [name, params[name] as Json]));
  const json = (given: Given) => Buffer.from(JSON.stringify(given));
  const inQuery = form === 'query' || verb === 'GET';
  const query = inQuery ? asForm(params) : form === 'split' ? asForm(pick(0, half)) : '';
  if (query.length > query_chars_max)
    return { query: '', body: json(params), contentType: 'application/json' };
  if (inQuery) return { query, body: null, contentType: '' };
  if (form === 'split')
    return { query, body: json(pick(half, names.length)), contentType: 'application/json' };
  if (form === 'json') return { query, body: json(params), contentType: 'application/json; charset=utf-8' };
  if (form === 'multipart')
    return { query, body: asMultipart(params, files), contentType: 'multipart/form-data; boundary=b' };
  const type = 'application/x-www-form-urlencoded';
  return { query, body: form === 'labelled' ? json(params) : Buffer.from(asForm(params)), contentType: type };
}

export interface Callers {
  readonly bot: string;
  readonly user: string;
  readonly admin: string;
}

export interface Caller {
  call(given: Case, callers: Callers): Promise<Answer>;
  close(): Promise<void>;
}

const concurrency = 32;

export function openCaller(service: Service): Caller {
  const pool = new Pool(service.fronts[0].url, { connections: concurrency, pipelining: 1 });

  async function send(given: Case, target: Target, callers: Callers): Promise<Answer> {
    const token = given.token === undefined ? callers[target.caller] : escaped(given.token);
    const encoded = encode(given, target.verb);
    const segments = (target.path ?? '').replace(/\{(\w+)\}/g, (_, name: string) =>
      escaped(asText(given.params[name] ?? '')).slice(0, query_chars_max),
    );
    const path = target.path === null ? `/bot${token}/${target.name}` : segments;
    const method = target.path === null && given.form === 'query' ? 'GET' : target.verb;
    const answer = await pool.request({
      path: encoded.query === '' ? path : `${path}?${encoded.query}`,
      method: method as 'GET',
      headers: {
        ...(target.path === null ? {} : { authorization: `Bearer ${token}` }),
        ...(encoded.contentType === '' ? {} : { 'content-type': encoded.contentType }),
        ...(given.idempotencyKey === undefined ? {} : { 'idempotency-key': given.idempotencyKey }),
      },
      body: encoded.body,
    });
    const { statusCode: status, headers } = answer;
    if (status === 200 && target.other) {
      answer.body.on('error', () => undefined).destroy();
      return { status, headers, body: { ok: true } };
    }
    return { status, headers, body: JSON.parse(await answer.body.text()) };
  }

  return {
    async call(given, callers) {
      const target = byName.get(given.target) as Target;
      try {
        const answer = await answered(() => send(given, target, callers));
        if (!(answer.status === 200 && target.other)) expectEnvelope(answer);
        if (target.path === null) holdMethod(target.name, answer);
        else holdEndpoint(target.verb, target.path, answer);
        return answer;
      } catch (error) {
        throw new Error(`${JSON.stringify(given).slice(0, 2_000)}: ${(error as Error).message}`, {
          cause: error,
        });
      }
    },
    close: () => pool.destroy(),
  };
}

/** Behaviour §1: every answer is JSON, a refusal has a 4xx status and a text, and no answer is a server error. */
function expectEnvelope({ status, headers, body }: Answer): void {
  expect(headers['content-type']).toBe('application/json');
  if (status === 200) {
    expect(body.ok).toBe(true);
    return;
  }
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
  const parameters = status === 429 ? { parameters: { retry_after: expect.any(Number) } } : {};
  expect(body).toEqual({ ok: false, error_code: status, description: expect.any(String), ...parameters });
  expect(body.description).not.toBe('');
}

/**
 * Runs all cases, `concurrency` at a time. After a failure, starts no more cases, and waits for the running
 * cases.
 */
export async function inFlight<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const lanes = Array.from({ length: concurrency }, async () => {
    try {
      while (next < items.length) await work(items[next++] as T);
    } catch (error) {
      next = items.length;
      throw error;
    }
  });
  const failed = (await Promise.allSettled(lanes)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

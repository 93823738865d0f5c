/** Checks of invalid requests: wrong paths, verbs, names, encodings and bodies. */
import { ApiError } from '../errors.js';
import { type Check, expectLike, expectRefusal, expectTrue, type Session, show } from './check.js';
import type { RawCall } from './client.js';
import { encodings } from './encodings.js';

const check = (proves: string, run: Check['run']): Check => ({
  subject: 'requests',
  proves,
  needs: [],
  beside: true,
  run,
});

const pathOf = ({ client }: Session, rest: string) => `/bot${client.token}/${rest}`;
const json = { 'content-type': 'application/json' };

async function refuses(
  s: Session,
  kind: ConstructorParameters<typeof ApiError>[0],
  rest: string,
  request: Partial<RawCall>,
  what: string,
): Promise<void> {
  const answer = await s.client.raw({ verb: 'POST', path: pathOf(s, rest), ...request });
  expectRefusal(answer, new ApiError(kind), what);
}

async function sameInEveryEncoding(s: Session): Promise<void> {
  const [first, ...others] = await Promise.all(
    encodings.map((encoding) => s.result('getMyName', { language_code: 'kk' }, { encoding })),
  );
  for (const other of others) expectLike(other, first, 'the name');
}

async function anyCase(s: Session): Promise<void> {
  const me = await s.result('getMe');
  for (const name of ['getme', 'GETME', 'GetMe']) {
    const { body } = await s.call(name);
    expectTrue(show(body.result) === show(me), `${name} answered ${show(body)}`);
  }
}

async function merges(s: Session): Promise<void> {
  const answer = await s.client.raw({
    verb: 'POST',
    path: pathOf(s, 'getMyName?language_code=none'),
    headers: json,
    body: '{"language_code":"en"}',
  });
  const isText = (value: unknown) => typeof value === 'string';
  expectLike(answer, { status: 200, body: { ok: true, result: { name: isText } } }, 'the answer');
}

async function badTokens(s: Session): Promise<void> {
  const { token } = s.client;
  const wrong = [
    ['an empty token', ''],
    ['the token "x"', 'x'],
    ['the token "1"', '1'],
    ['a token that is too long', `${token}x`],
    ['a token that is too short', token.slice(0, -1)],
    ['a token without a colon', token.replace(':', '')],
  ] as const;
  for (const [name, value] of wrong) {
    const answer = await s.client.raw({ verb: 'GET', path: `/bot${value}/getMe` });
    expectRefusal(answer, new ApiError('unauthorized'), `getMe with ${name}`);
  }
}

async function escapedToken(s: Session): Promise<void> {
  const answer = await s.client.raw({
    verb: 'GET',
    path: `/bot${s.client.token.replace(':', '%3A')}/getMe`,
  });
  expectLike(answer.body, { ok: true, result: s.me }, 'getMe');
}

async function badBodies(s: Session): Promise<void> {
  const method = 'getMyName';
  for (const body of ['{', '[]', '"x"', 'null'])
    await refuses(s, 'bad_json', method, { headers: json, body }, `the body ${body}`);
  const lone = '{"language_code":"\\ud800"}';
  await refuses(s, 'bad_unicode', method, { headers: json, body: lone }, `the body ${lone}`);
  await refuses(s, 'bad_unicode', `${method}?language_code=%ff`, {}, 'a query that is not UTF-8');
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`p${i}`, 1])));
  await refuses(s, 'too_many_parameters', method, { headers: json, body: many }, '1,001 parameters');
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  await refuses(s, 'bad_request', method, { headers, body: '--b\r\n' }, 'a multipart body without an end');
}

export const requestChecks: readonly Check[] = [
  check('getMe answers GET and POST with the same bot', async (s) => {
    for (const encoding of ['query by GET', 'JSON', 'a form'] as const)
      expectLike(await s.result('getMe', {}, { encoding }), s.me, 'getMe');
  }),
  check('a call has the same result in every encoding', sameInEveryEncoding),
  check('a parameter in the body overrides the query', merges),
  check('names of methods ignore case', anyCase),
  check('an unknown method answers 404', async (s) => {
    for (const name of ['getNothing', 'get', 'sendGame', 'getMeX'])
      await refuses(s, 'method_not_found', name, {}, name);
  }),
  check('an unknown path answers 404', async (s) => {
    await refuses(s, 'not_found', 'test/getMe', {}, 'the path test/getMe');
  }),
  check('verbs other than GET and POST answer 405', async (s) => {
    for (const verb of ['PUT', 'DELETE', 'PATCH'])
      await refuses(s, 'method_not_allowed', 'getMe', { verb }, verb);
  }),
  check('malformed tokens answer 401', badTokens),
  check('the colon of a token may be escaped', escapedToken),
  check('malformed bodies answer 400', badBodies),
  check('an unknown parameter is ignored, and null counts as absent', async (s) => {
    await s.result('getMyName', { language_code: null, unknown: 1 });
  }),
  check('a parameter of the Bot API that is not supported is refused', (s) =>
    s.refused('sendMessage', { chat_id: s.me.id, text: 'x', message_thread_id: 7 }, 'parameter_unsupported', {
      name: 'message_thread_id',
    }),
  ),
];

import { describe, expect, test } from 'vitest';
import { issuerOf, misspelt, providerOf, readConfig, signInOf } from '../src/config/config.js';

describe('WEBHOOK_ALLOW_CIDRS', () => {
  test.each<[text: string, ranges: string[]]>([
    ['', []],
    ['127.0.0.0/8', ['127.0.0.0/8']],
    [' 10.0.0.0/8 , fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
    ['192.168.1.7', ['192.168.1.7/32']],
    ['::1', ['::1/128']],
    ['0.0.0.0/0,::/0', ['0.0.0.0/0', '::/0']],
  ])('WEBHOOK_ALLOW_CIDRS accepts %j', (text, ranges) => {
    expect(readConfig({ WEBHOOK_ALLOW_CIDRS: text }).WEBHOOK_ALLOW_CIDRS).toEqual(ranges);
  });

  test.each([
    '10.0.0.0/33',
    '::/129',
    '10.0.0/8',
    '010.0.0.0/8',
    '0x0a.0.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    'localhost',
    'fe80::1%lo',
    'fe80::%lo/64',
    '10.0.0.0/8,',
    '/8',
  ])('WEBHOOK_ALLOW_CIDRS refuses %j', (text) => {
    expect(() => readConfig({ WEBHOOK_ALLOW_CIDRS: text })).toThrow(
      'WEBHOOK_ALLOW_CIDRS must be ranges of addresses like 10.0.0.0/8, separated by commas',
    );
  });
});

test('WEBHOOK_SIGNING_KEYS must contain 1 to 4 different keys of 32 bytes', () => {
  const keys = Array.from({ length: 5 }, (_, i) => Buffer.alloc(32, i).toString('base64url'));
  const read = (text: string) => readConfig({ WEBHOOK_SIGNING_KEYS: text }).WEBHOOK_SIGNING_KEYS;
  expect(readConfig({}).WEBHOOK_SIGNING_KEYS).toBeUndefined();
  expect(read(keys.slice(0, 4).join(', '))).toEqual(keys.slice(0, 4));
  // A key of 32 bytes has 43 base64url characters. The last two bits of the last character are not part of the key.
  const same = `${keys[0]?.slice(0, -1)}B`;
  const refused = [
    ...[keys.join(), `${keys[0]},${keys[0]}`, `${keys[0]},${same}`, `${keys[0]},`],
    ...[`${keys[0]}=`, 'a'.repeat(42)],
  ];
  for (const text of refused) expect(() => read(text)).toThrow('WEBHOOK_SIGNING_KEYS must be 1 to 4 keys');
});
test('HEADER_SERVICE_NAME must be valid in a header name', () => {
  expect(readConfig({}).HEADER_SERVICE_NAME).toBe('Service');
  expect(readConfig({ HEADER_SERVICE_NAME: 'My-Bots2' }).HEADER_SERVICE_NAME).toBe('My-Bots2');
  for (const name of ['a b', 'a:', '-a', 'ä', 'a\r\nX: y', 'a'.repeat(33)])
    expect(() => readConfig({ HEADER_SERVICE_NAME: name })).toThrow('HEADER_SERVICE_NAME must be');
});

describe('RATE_PER_BOT', () => {
  test.each([
    ['30/1', { calls: 30, seconds: 1 }],
    ['1000000/86400', { calls: 1_000_000, seconds: 86_400 }],
  ])('RATE_PER_BOT accepts %s', (text, rate) => {
    expect(readConfig({ RATE_PER_BOT: text }).RATE_PER_BOT).toEqual(rate);
  });

  test.each(['30', '0/1', '1/0', '30/1s', '-1/1', '1.5/1', '1000001/1', '1/86401', '/'])(
    'RATE_PER_BOT refuses %s',
    (text) => {
      expect(() => readConfig({ RATE_PER_BOT: text })).toThrow('RATE_PER_BOT must be calls/seconds');
    },
  );

  test('RATE_PER_BOT=0 means no limit', () =>
    expect(readConfig({ RATE_PER_BOT: '0' }).RATE_PER_BOT).toEqual({ calls: 0, seconds: 1 }));

  test('there are default rate limits per bot, person, chat and reader', () => {
    const { RATE_PER_BOT, RATE_PER_PERSON, RATE_PER_CHAT, RATE_PER_READER, ...others } = readConfig({});
    const { RATE_PER_OWNER, RATE_PER_ADDRESS } = others;
    expect([RATE_PER_BOT, RATE_PER_PERSON, RATE_PER_CHAT, RATE_PER_READER]).toEqual([
      { calls: 2_000, seconds: 2 },
      { calls: 30, seconds: 1 },
      { calls: 60, seconds: 1 },
      { calls: 60, seconds: 10 },
    ]);
    expect([RATE_PER_OWNER, RATE_PER_ADDRESS]).toEqual([undefined, undefined]);
  });
});

describe('invalid settings of the identity provider are refused', () => {
  const said = { JWT_ISSUER: 'https://id.example/', JWT_AUDIENCE: 'petrel' };
  const url = 'https://id.example/keys';

  test('settings of the identity provider are refused if a required setting is missing', () => {
    expect(providerOf(readConfig({}))).toBeUndefined();
    expect(providerOf(readConfig({ ...said, JWT_JWKS_URL: url }))).toEqual({
      ...{ source: { url }, issuer: said.JWT_ISSUER, audience: 'petrel' },
      ...{ subjectClaim: 'sub', createUsers: false },
    });
    expect(providerOf(readConfig({ ...said, JWT_JWKS_FILE: 'keys.json' }))?.source).toEqual({
      file: 'keys.json',
    });
  });

  test.each<[string, Record<string, string>, string]>([
    ['two sources of keys', { ...said, JWT_JWKS_URL: url, JWT_JWKS_FILE: 'x' }, 'exclude each other'],
    ['no issuer', { JWT_AUDIENCE: 'x', JWT_JWKS_URL: url }, 'JWT_ISSUER is required'],
    ['no audience', { JWT_ISSUER: 'x', JWT_JWKS_URL: url }, 'JWT_AUDIENCE is required'],
    ['a key URL without TLS', { ...said, JWT_JWKS_URL: 'http://id.example/keys' }, 'begins with https://'],
  ])('the settings of the identity provider are refused: %s', (_, env, text) => {
    expect(() => providerOf(readConfig(env))).toThrow(text);
  });
});

describe('OIDC_ISSUER', () => {
  const given = {
    ...{ OIDC_ISSUER: 'https://id.example/realm', OIDC_CLIENT_ID: 'petrel' },
    BASE_URL: 'https://petrel.example/',
  };

  test('the settings of a sign-in through a provider have defaults', () => {
    expect(signInOf(readConfig({}))).toBeUndefined();
    expect(signInOf(readConfig(given))).toEqual({
      ...{ issuer: given.OIDC_ISSUER, clientId: 'petrel', clientSecret: undefined },
      ...{ scopes: 'openid profile', name: 'id.example', createUsers: false },
      redirectUri: 'https://petrel.example/app',
    });
    const jwt = { JWT_ISSUER: given.OIDC_ISSUER, JWT_AUDIENCE: 'api', JWT_JWKS_FILE: 'keys.json' };
    expect(issuerOf(readConfig({ ...given, ...jwt }))).toBe(given.OIDC_ISSUER);
    expect(issuerOf(readConfig(given))).toBe(given.OIDC_ISSUER);
  });

  test.each<[string, Record<string, string>, string]>([
    ['no client', { ...given, OIDC_CLIENT_ID: '' }, 'OIDC_CLIENT_ID is required'],
    ['no public address', { ...given, BASE_URL: '' }, 'BASE_URL is required'],
    [
      'another issuer of JWTs',
      { ...given, JWT_ISSUER: 'https://other.example' },
      'needs the same JWT_ISSUER',
    ],
    [
      'another claim of JWTs',
      { ...given, JWT_ISSUER: given.OIDC_ISSUER, JWT_SUBJECT_CLAIM: 'email' },
      'JWT_SUBJECT_CLAIM=sub',
    ],
    ['scopes without openid', { ...given, OIDC_SCOPES: 'profile' }, 'with openid'],
    ['scopes with a quote', { ...given, OIDC_SCOPES: 'openid "x"' }, 'names separated by blanks'],
    ...['http://id.example', 'https://u:p@id.example', 'https://id.example/?a=1', 'http://10.0.0.1', 'x'].map(
      (issuer): [string, Record<string, string>, string] => [
        `the issuer ${issuer}`,
        { ...given, OIDC_ISSUER: issuer },
        'OIDC_ISSUER must be a URL that begins with https://',
      ],
    ),
  ])('the settings of a sign-in through a provider are refused: %s', (_, env, text) => {
    expect(() => signInOf(readConfig(env))).toThrow(text);
  });

  test.each(['http://127.0.0.1:8080', 'http://[::1]:8080/realm', 'http://localhost'])(
    'a provider on this machine may use HTTP: %s',
    (issuer) => {
      expect(signInOf(readConfig({ ...given, OIDC_ISSUER: issuer }))?.issuer).toBe(issuer);
    },
  );
});

describe('SUGGESTED_CHATS', () => {
  test.each([
    ['', []],
    ['guide_bot @news', ['guide_bot', 'news']],
  ])('SUGGESTED_CHATS accepts %j', (text, names) => {
    expect(readConfig({ SUGGESTED_CHATS: text }).SUGGESTED_CHATS).toEqual(names);
  });

  test.each(['a', 'news news', 'news NEWS', 'news,guide_bot', 'a-b', 'abc '.repeat(11)])(
    'SUGGESTED_CHATS refuses %j',
    (text) => {
      expect(() => readConfig({ SUGGESTED_CHATS: text })).toThrow(
        'SUGGESTED_CHATS must be up to 10 usernames',
      );
    },
  );
});

test('an unknown variable that resembles a setting is reported with the name of that setting', () => {
  const env = {
    REDISURL: 'x',
    DATABASE_URI: 'x',
    petrel_port: '1',
    TOKEN_KEY_FILE: 'x',
    PETREL_LOG_LEVL: 'x',
  };
  expect(misspelt(env)).toEqual([
    'REDISURL is not a setting: did you mean REDIS_URL?',
    'DATABASE_URI is not a setting: did you mean DATABASE_URL?',
    'petrel_port is not a setting: did you mean PORT?',
    'TOKEN_KEY_FILE is not a setting: did you mean TOKEN_KEYS_FILE?',
    'PETREL_LOG_LEVL is not a setting: did you mean LOG_LEVEL?',
  ]);
  const others = {
    HOME: '/',
    HOSTNAME: 'x',
    POST: '1',
    REDIS_PORT: '6379',
    PGHOST: 'x',
    PETREL_CONFIG: 'x',
    REDIS_URL_FILE: 'x',
  };
  expect(misspelt(others)).toEqual([]);
  // Kubernetes sets variables with names such as PETREL_PORT. Their values are addresses of services.
  expect(misspelt({ PETREL_PORT: 'tcp://10.0.0.1:80' })).toEqual([]);
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readConfig, resolvedEnvironment, settings } from '../src/config/config.js';
import { secretSettings } from '../src/config/config_file.js';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'petrel-config-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const file = (name: string, text: string) => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};

test('a secret from a file does not include the final line break', () => {
  const ADMIN_TOKEN_FILE = file('admin', 'a secret of an operator\n');
  expect(readConfig({ ADMIN_TOKEN_FILE }).ADMIN_TOKEN).toBe('a secret of an operator');
});

test('the list of secret settings contains every setting that holds a secret', () => {
  expect(secretSettings.filter((name) => !(name in settings))).toEqual([]);
  const secret = /token|secret|pepper|keys?\b|_URL$/i;
  const others = [
    'BASE_URL',
    'JWT_JWKS_URL',
    'FILES_S3_URL',
    'OTLP_TRACES_URL',
    'PROMETHEUS_URL',
    'LEAK_REPORT_KEYS',
  ];
  const named = Object.keys(settings).filter((name) => secret.test(name.replace('GUESSES', '')));
  expect(named.filter((name) => !(secretSettings as readonly string[]).includes(name)).sort()).toEqual(
    others.filter((name) => name in settings).sort(),
  );
});

test('the environment overrides a settings file', () => {
  const PETREL_CONFIG = file(
    'all',
    `# what all roles share\nPORT=9000\nexport HOST='127.0.0.1'\n\n TOKEN_PEPPER_FILE = "${file('pepper', 'p'.repeat(40))}"\n`,
  );
  const config = readConfig({ PETREL_CONFIG, PORT: '9001' });
  expect([config.PORT, config.HOST, config.TOKEN_PEPPER]).toEqual([9001, '127.0.0.1', ['p'.repeat(40)]]);
});

test('an unusable settings file is refused, and the error shows no secret', () => {
  expect(() => readConfig({ TOKEN_KEYS_FILE: join(dir, 'none') })).toThrow(
    `TOKEN_KEYS_FILE names a file that cannot be read (ENOENT): ${join(dir, 'none')}`,
  );
  expect(() => readConfig({ PETREL_CONFIG: file('wrong', 'PORT=1\nTOKEN_PEPER=hidden\n') })).toThrow(
    `line 2 of ${join(dir, 'wrong')} is not a setting: did you mean TOKEN_PEPPER?`,
  );
  expect(() => readConfig({ PETREL_CONFIG: file('other', 'PORT=x\n') })).toThrow('PORT must be');
  const ADMIN_TOKEN_FILE = file('admin', 'a secret of an operator');
  expect(() => readConfig({ ADMIN_TOKEN_FILE, ADMIN_TOKEN: 'another one of them' })).toThrow(
    'ADMIN_TOKEN and ADMIN_TOKEN_FILE exclude each other',
  );
});

test('child processes get the contents of settings files instead of the file names', () => {
  const PETREL_CONFIG = file('shared', 'PORT=9000\nLOG_LEVEL=warn\n');
  const TOKEN_KEYS_FILE = file('keys', 'k1:x\n');
  const env = { PATH: '/bin', PETREL_CONFIG, TOKEN_KEYS_FILE, LOG_LEVEL: 'error' };
  const { PATH, PORT, LOG_LEVEL, TOKEN_KEYS, ...rest } = resolvedEnvironment(env);
  expect({ PATH, PORT, LOG_LEVEL, TOKEN_KEYS }).toEqual({
    ...{ PATH: '/bin', PORT: '9000', LOG_LEVEL: 'error', TOKEN_KEYS: 'k1:x' },
  });
  expect(Object.values(rest).filter((value) => value !== undefined)).toEqual([]);
});

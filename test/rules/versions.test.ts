import { expect, it } from 'vitest';
import { postgresVersionProblem, redisVersion } from '../../src/rules/versions.js';

it.each([
  ['18.1', true],
  ['15.18 (Debian 15.18-0+deb12u1)', true],
  ['15beta1', true],
  ['14.22', false],
  ['9.6.24', false],
  ['', false],
])('PostgreSQL "%s" is accepted only if it is version 15 or newer', (version, usable) => {
  expect(postgresVersionProblem(version)).toBe(
    usable ? null : `PostgreSQL ${version} is too old, 15 or newer is needed`,
  );
});

const info = (lines: Record<string, string>) =>
  `# Server\r\n${Object.entries(lines)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')}# Clients\r\n`;

it.each([
  [{ redis_version: '7.0.15' }, 'Redis', '7.0.15', null],
  [{ redis_version: '7.0.0' }, 'Redis', '7.0.0', null],
  [{ redis_version: '8.0.2' }, 'Redis', '8.0.2', null],
  [{ redis_version: '10.0.0' }, 'Redis', '10.0.0', null],
  [{ redis_version: '6.2.14' }, 'Redis', '6.2.14', 'Redis 6.2.14 is too old, Redis 7.0 or newer is needed'],
  [{ redis_version: '6.9.99' }, 'Redis', '6.9.99', 'Redis 6.9.99 is too old, Redis 7.0 or newer is needed'],
  [{}, 'Redis', '0', 'Redis 0 is too old, Redis 7.0 or newer is needed'],
  [{ redis_version: '7.2.4', server_name: 'valkey', valkey_version: '8.1.1' }, 'Valkey', '8.1.1', null],
  [{ redis_version: '7.2.4', server_name: 'valkey', valkey_version: '7.2.5' }, 'Valkey', '7.2.5', null],
  [{ redis_version: '7.2.4', valkey_version: '8.0.0-rc1' }, 'Valkey', '8.0.0-rc1', null],
  [
    { redis_version: '7.2.4', valkey_version: '7.1.0' },
    'Valkey',
    '7.1.0',
    'Valkey 7.1.0 is too old, Valkey 7.2 or newer is needed',
  ],
])('the server name and version are read from INFO %j', (lines, name, version, problem) => {
  expect(redisVersion(info(lines as Record<string, string>))).toEqual({ name, version, problem });
});

/** A service with two fronts, for tests of the texts of bots. */
import { randomBytes } from 'node:crypto';
import { test } from 'vitest';
import { ownPostgres, type Restartable } from '../faults/backends.js';
import type { Front } from '../support/role_process.js';
import { resultOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';
import { type Watch, watch } from './refused.js';

export const languages = ['ru', 'en', 'uz', 'tg', 'hy', 'tt', 'kk'];
export const kinds = [
  { key: 'name', set: 'setMyName', get: 'getMyName', max: 64, tooLong: 'name is too long' },
  {
    key: 'description',
    set: 'setMyDescription',
    get: 'getMyDescription',
    max: 512,
    tooLong: 'description is too long',
  },
  {
    key: 'short_description',
    set: 'setMyShortDescription',
    get: 'getMyShortDescription',
    max: 120,
    tooLong: 'short description is too long',
  },
] as const;

export interface World {
  readonly service: Service;
  readonly postgres: Restartable;
  readonly owner: TestUser;
  readonly seen: Watch;
  readonly url: string;
  speaker(language_code?: string): Promise<TestUser>;
  newBot(): Promise<TestBot>;
  /** Calls a method as a bot and returns the result. Uses the first front by default. */
  // biome-ignore lint/suspicious/noExplicitAny: results of every shape
  call(bot: TestBot, method: string, params: object, front?: number): Promise<any>;
  /** Calls an endpoint as a person and returns the result. Uses the second front by default. */
  // biome-ignore lint/suspicious/noExplicitAny: results of every shape
  app(user: TestUser, verb: string, path: string, body?: unknown, front?: number): Promise<any>;
  refused(bot: TestBot, method: string, params: object, text: string): Promise<void>;
  stop(): Promise<void>;
}

// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of other fixtures from the pattern
const shared = test.extend('world', { scope: 'file' }, async ({}, { onCleanup }) => {
  const world = await startWorld();
  onCleanup(async () => {
    await world.seen.close();
    await world.stop();
  });
  return world;
});

/** Calls `begin` with the world of this test file. The world runs until the file ends. */
export const onWorld = (begin: (world: World) => void) => shared.beforeAll(({ world }) => begin(world));

async function startWorld(): Promise<World> {
  const postgres = await ownPostgres();
  const database = { url: postgres.url, drop: () => postgres.stop() };
  const service = await startService({ fronts: 2, flushing: false, database });
  const owner = await service.newUser('olga');
  const seen = await watch(service);
  const bot = (who: TestBot, method: string, params: object, front = 0) =>
    service.bot(who, method, params as Record<string, unknown>, front);
  return {
    ...{ service, postgres, owner, seen },
    url: (service.fronts[1] as Front).url,
    async speaker(language_code) {
      const username = `reader_${randomBytes(4).toString('hex')}`;
      const body = { username, first_name: 'Reader', language_code };
      const admin = { token: service.adminToken };
      const { user, token } = await resultOf(service.app(admin, 'POST', '/api/admin/users', body));
      return { ...user, token };
    },
    newBot: () => service.newBot(owner, 'named'),
    call: (who, method, params, front) => resultOf(bot(who, method, params, front)),
    app: (user, verb, path, body, front = 1) => resultOf(service.app(user, verb, path, body, front)),
    refused: (who, method, params, text) =>
      seen.refused(() => bot(who, method, params), 400, `Bad Request: ${text}`),
    stop: () => service.stop(),
  };
}

/** The people and bots that tests of bot texts use. They are created in the service of the test file. */
import { randomBytes } from 'node:crypto';
import type { Front } from '../support/role_process.js';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import type { Watch } from './refused.js';
import { onWatchedService, type Watched } from './texts_service.js';

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
}

/** Before the tests of a file, creates people and bots in its service and calls `begin` with them. */
export const onWorld = (begin: (world: World) => void) =>
  onWatchedService(async (watched) => begin(await openWorld(watched)));

async function openWorld({ service, seen }: Watched): Promise<World> {
  const owner = await service.newUser('olga');
  const bot = (who: TestBot, method: string, params: object, front = 0) =>
    service.bot(who, method, params as Record<string, unknown>, front);
  return {
    ...{ service, owner, seen },
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
  };
}

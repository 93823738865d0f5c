import { type Answer, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { eventually } from './event_source.js';
import type { Library, LibraryBot } from './library.js';

export type Json = Answer['body'];

export interface Place {
  readonly service: Service;
  /** The person who has opened the bot's direct chat and created the group and the channel. */
  readonly user: TestUser;
  /** A person who is in no chat at the beginning. */
  readonly friend: TestUser;
  readonly made: TestBot;
  readonly other: TestBot;
  readonly bot: LibraryBot;
  readonly group: number;
  /** A channel in which the bot may post, edit and delete. */
  readonly channel: number;
  readonly picture: Buffer;
  app(verb: string, path: string, body?: object, who?: TestUser): Promise<Json>;
  say(chat: number, text: string): Promise<Json>;
  answered(chat: number, after: number, matches?: (message: Json) => boolean): Promise<Json>;
  shown(chat: number, messageId: number): Promise<Json>;
  /** Waits for the first matching update of this kind that the bot's middleware gets. */
  received(kind: string, matches: (content: Json) => boolean): Promise<Json>;
}

/** A step is one test that runs with each library. Steps do not depend on each other. */
export interface Step {
  readonly name: string;
  run(place: Place): Promise<void>;
}

export async function openPlace(
  service: Service,
  library: Library,
  root: string,
  picture: Buffer,
): Promise<Place> {
  const user = await service.newUser('ann');
  const friend = await service.newUser('fred');
  const made = await service.newBot(user, 'steps');
  const other = await service.newBot(user, 'other');
  await service.openChat(user, made);
  const app = (verb: string, path: string, body?: object, who = user) =>
    resultOf(service.app(who, verb, path, body, 1));
  const group = await service.newGroup(user, 'Team', [made, other]);
  const { id: channel } = await app('POST', '/api/chats', { type: 'channel', title: 'News' });
  const rights = { can_post_messages: true, can_edit_messages: true, can_delete_messages: true };
  await app('PUT', `/api/chats/${channel}/members/${made.id}`, { status: 'administrator', rights });
  const bot = await library.start(made, root, picture);
  const newest = async (chat: number) => (await app('GET', `/api/chats/${chat}/messages?limit=50`)).items;
  return {
    ...{ service, user, friend, made, other, bot, group, channel, picture, app },
    say: (chat, text) => app('POST', `/api/chats/${chat}/messages`, { text }),
    answered: (chat, after, matches = () => true) =>
      eventually(async () => {
        const found = (await newest(chat)).find(
          (message: Json) => message.message_id > after && message.from?.id !== user.id && matches(message),
        );
        if (!found) throw new Error('not answered');
        return found;
      }),
    async shown(chat, messageId) {
      const found = (await newest(chat)).find(({ message_id }: Json) => message_id === messageId);
      if (!found) throw new Error(`message ${messageId} is not shown`);
      return found;
    },
    received: (kind, matches) =>
      eventually(() => {
        const update = bot.received.find((each) => each[kind] !== undefined && matches(each[kind]));
        if (!update) throw new Error(`${kind} not received; last: ${JSON.stringify(bot.received.slice(-2))}`);
        return update[kind];
      }),
  };
}

export const badRequest = (method: string, text: string) => ({
  error_code: 400,
  description: `Bad Request: ${text}`,
  method,
  retry_after: undefined,
});

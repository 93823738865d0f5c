/** Maps people's actions to calls of the application API. */
import { z } from 'zod';
import { fail } from '../errors.js';
import { integer, json, optional, text } from '../wire/schema.js';
import type { InnerCall } from './inner_call.js';
import type { Person, World } from './worlds.js';

const chat = optional(z.union([z.enum(['bot', 'group', 'channel']), integer()])).describe(
  '`bot` (default), `group`, `channel`, or the id of a chat',
);

type Call = Omit<InnerCall, 'token'>;
/** Makes a call as the person and returns its result. */
type Read = (call: Call) => Promise<unknown>;
type MakeCall<P> = (world: World, params: P, read: Read) => Call | Promise<Call>;

interface Post {
  readonly id: number;
  readonly message_id: number;
}

export interface Action {
  readonly name: string;
  readonly summary: string;
  readonly params: z.ZodType;
  readonly call: MakeCall<never>;
}

const defineAction = <P extends z.ZodType>(action: {
  readonly name: string;
  readonly summary: string;
  readonly params: P;
  readonly call: MakeCall<z.output<P>>;
}) => action as Action;

/** Returns a chat's id in the application API. Throws `chat_not_found`. */
function chatId({ bot, chats }: World, given: string | number | undefined): number {
  if (typeof given === 'number') return given;
  if (given === 'group' || given === 'channel') return chats[given] ?? fail('chat_not_found');
  return bot.id;
}

const messagePath = (world: World, p: { chat?: string | number | undefined; message_id: number }) =>
  `/api/chats/${chatId(world, p.chat)}/messages/${p.message_id}`;

const botPath = ({ bot }: World) => `/api/bots/${bot.username}`;
const anObject = z.record(z.string(), z.unknown(), { error: 'an object' });
const inChat = z.object({ chat });
const onMessage = z.object({ chat, message_id: integer() });

export const actions: readonly Action[] = [
  defineAction({
    name: 'start',
    summary: 'Presses Start in the chat with the bot. The bot gets `/start` with the payload.',
    params: z.object({ payload: optional(text) }),
    call: (world, params) => ({ verb: 'POST', path: `${botPath(world)}/start`, params }),
  }),
  defineAction({
    name: 'send',
    summary:
      'Sends a text, a location, a contact or a file. Send a file in a multipart body. Name the parts and parameters as in the application API, for example `photo` and `caption`.',
    params: z.looseObject({
      chat,
      text: optional(text),
      location: optional(json(anObject)),
      contact: optional(json(anObject)),
      reply_to_message_id: optional(integer()),
    }),
    call: (world, { chat: to, ...params }) => ({
      verb: 'POST',
      path: `/api/chats/${chatId(world, to)}/messages`,
      params,
    }),
  }),
  defineAction({
    name: 'edit',
    summary: 'Replaces the text of a message that the person sent.',
    params: onMessage.extend({ text }),
    call: (world, p) => ({ verb: 'PATCH', path: messagePath(world, p), params: { text: p.text } }),
  }),
  defineAction({
    name: 'delete',
    summary: 'Deletes a message.',
    params: onMessage,
    call: (world, p) => ({ verb: 'DELETE', path: messagePath(world, p) }),
  }),
  defineAction({
    name: 'vote',
    summary: 'Votes in a poll. An empty list retracts the vote.',
    params: onMessage.extend({ option_ids: json(z.array(z.int(), { error: 'an array of integers' })) }),
    call: (world, p) => ({
      verb: 'POST',
      path: `${messagePath(world, p)}/poll`,
      params: { option_ids: p.option_ids },
    }),
  }),
  defineAction({
    name: 'stop_draft',
    summary: 'Asks the bot to stop writing a message.',
    params: z.object({ draft_id: integer() }),
    call: ({ bot }, params) => ({ verb: 'POST', path: `/api/chats/${bot.id}/draft/stop`, params }),
  }),
  defineAction({
    name: 'inline_query',
    summary: 'Sends an inline query and waits for the answer of the bot, up to 7 seconds.',
    params: z.object({ chat, query: text, offset: optional(text) }),
    call: (world, { chat: to, ...params }) => ({
      verb: 'POST',
      path: `/api/chats/${chatId(world, to)}/inline_query`,
      params: { ...params, bot_id: world.bot.id },
    }),
  }),
  defineAction({
    name: 'choose',
    summary: 'Sends a result of an inline query.',
    params: z.object({ chat, inline_query_id: text, result_id: text }),
    call: (world, { chat: to, ...params }) => ({
      verb: 'POST',
      path: `/api/chats/${chatId(world, to)}/inline_result`,
      params,
    }),
  }),
  defineAction({
    name: 'press',
    summary: 'Presses an inline button of a message.',
    params: onMessage.extend({ data: text }),
    call: (world, p) => ({
      verb: 'POST',
      path: `${messagePath(world, p)}/callback`,
      params: { data: p.data },
    }),
  }),
  defineAction({
    name: 'react',
    summary: 'Adds a reaction to a message of the channel.',
    params: z.object({ message_id: integer(), emoji: text }),
    call: async (world, { message_id, emoji }, read) => {
      const newest = { before: message_id + 1, limit: 1 };
      const path = `/api/chats/${chatId(world, 'channel')}/posts`;
      const { items } = (await read({ verb: 'GET', path, params: newest })) as { items: Post[] };
      const post = items.find((each) => each.message_id === message_id) ?? fail('post_not_found');
      return { verb: 'POST', path: `/api/posts/${post.id}/reactions`, params: { emoji } };
    },
  }),
  defineAction({
    name: 'join',
    summary: 'Joins a chat.',
    params: inChat,
    call: (world, p) => ({ verb: 'POST', path: `/api/chats/${chatId(world, p.chat)}/join` }),
  }),
  defineAction({
    name: 'leave',
    summary: 'Leaves a chat.',
    params: inChat,
    call: (world, p) => ({ verb: 'POST', path: `/api/chats/${chatId(world, p.chat)}/leave` }),
  }),
  defineAction({
    name: 'block',
    summary: 'Blocks the bot.',
    params: z.object({}),
    call: (world) => ({ verb: 'POST', path: `${botPath(world)}/block` }),
  }),
  defineAction({
    name: 'unblock',
    summary: 'Unblocks the bot.',
    params: z.object({}),
    call: (world) => ({ verb: 'DELETE', path: `${botPath(world)}/block` }),
  }),
];

const byName = new Map(actions.map((action) => [action.name, action]));

/** Throws `not_found`. */
export const actionNamed = (name: string): Action => byName.get(name) ?? fail('not_found');

/** Throws `user_not_found`. */
export const personNamed = (world: World, name: string): Person =>
  world.people.find((person) => person.name === name) ?? fail('user_not_found');

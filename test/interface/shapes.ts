/** Complete objects as the interface shows them: people, bots, chats, messages, posts, reactions. */
import { expect } from 'vitest';
import type { Bot, People, Person, Post } from './case.js';

/** A time in Unix seconds, or an id. Matches any number. */
export const number = expect.any(Number);
export const uuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
export const heart = '\u2764';

export const person = ({ id, first_name, username }: Person) => ({ id, is_bot: false, first_name, username });

export const known = (one: Person) => ({ ...person(one), external_id: one.external_id });

export const botUser = ({ id, name, username }: Bot) => ({ id, is_bot: true, first_name: name, username });

export const privateChat = ({ id, first_name, username }: Person) => ({
  ...{ id, type: 'private', first_name, username },
});

export const groupChat = (id: number) => ({ id, type: 'group', title: 'The group' });
export const channelChat = (id: number) => ({ id, type: 'channel', title: 'The channel' });

/** A message from a bot to Ann, as the bot sees it. */
export const botMessage = (bot: Bot, ann: Person, message_id: unknown = number) => ({
  message_id,
  from: botUser(bot),
  chat: privateChat(ann),
  date: number,
});

/** A message from a person, as bots of the chat see it. */
export const personMessage = (from: Person, chat: object, message_id: unknown = number) => ({
  message_id,
  from: person(from),
  chat,
  date: number,
});

/** A post in the channel that all rows share. */
export const post = (
  { press, channel }: People,
  { id, external_id, message_id }: Post,
  all: readonly object[] = [],
  liked_by_me = false,
) => ({
  ...{ id, external_id, message_id },
  chat: channelChat(channel),
  author: botUser(press),
  ...{ date: number, text: 'A post', reactions: all, liked_by_me },
});

export const reaction = (emoji: string, ...users: Person[]) => ({
  emoji,
  count: users.length,
  user_ids: users.map(({ external_id }) => external_id),
});

export const reactions = (all: readonly object[], my_reactions: readonly string[]) => ({
  ok: true,
  reactions: all,
  my_reactions,
});

export const keyboard = (text: string, callback_data = 'data') => ({
  inline_keyboard: [[{ text, callback_data }]],
});

export const photoUrl = 'https://example.org/picture.jpg';
export const videoUrl = 'https://example.org/film.mp4';

const file = { file_id: expect.any(String), file_unique_id: expect.any(String) };

/** A photo that was sent by URL. Its size is unknown. */
export const photo = [{ ...file, width: 0, height: 0 }];
export const video = { ...file, width: 0, height: 0, duration: 0 };

const notModified =
  'message is not modified: specified new message content and reply markup are exactly the same as a current ' +
  'content and reply markup of the message';

export const texts = {
  notModified,
  cantEdit: "message can't be edited",
  noEdit: 'message to edit not found',
  noText: 'there is no text in the message to edit',
  noCaption: 'there is no caption in the message to edit',
  noMedia: "message media can't be edited",
  noPin: 'message to pin not found',
  noUnpin: 'message to unpin not found',
  noPinRight: 'not enough rights to manage pinned messages in the chat',
  cantForward: "message has protected content and can't be forwarded",
  cantCopy: "message has protected content and can't be copied",
} as const;

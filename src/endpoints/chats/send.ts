/** Sends messages and albums as a person (decision 0059). */
import { z } from 'zod';
import { albumMedia, sendAlbum } from '../../actions/albums.js';
import { chatOfUser, textContent, userSender, writingErrors } from '../../actions/compose.js';
import {
  amount,
  captionParams,
  fileErrors,
  media,
  movingParams,
  onlyKind,
  personFileTypes,
  sendFile,
} from '../../actions/send_media.js';
import { contactOf, contactParams, locationOf, locationParams } from '../../actions/send_object.js';
import { viewAllOwn, viewOwn } from '../../actions/shown_messages.js';
import { fail } from '../../errors.js';
import { defineEndpoint, type EndpointContext } from '../../server/endpoint.js';
import type { ContentObject, MediaType } from '../../store/core/codec.js';
import type { User } from '../../store/core/control.js';
import type { StoredMessage } from '../../store/core/stored_message.js';
import { appChatId } from '../../wire/fields.js';
import { message, messageList } from '../../wire/results.js';
import { entities, integer, json, optional, text } from '../../wire/schema.js';

const replyTo = optional(integer()).describe('Id of a message in the same chat');

const params = z.object({
  chat_id: appChatId,
  text: optional(text).describe('Up to 4096 characters, or up to 1024 as a caption'),
  entities,
  ...captionParams,
  photo: media,
  video: media,
  animation: media,
  audio: media,
  voice: media,
  document: media,
  video_note: media.describe('A square video: an uploaded part or a `file_id`. It has no caption'),
  location: optional(json(z.object(locationParams, { error: 'a location' }))).describe('A point on the map'),
  contact: optional(json(z.object(contactParams, { error: 'a contact' }))).describe('A phone contact'),
  ...movingParams,
  length: amount.describe('Sides of a video note. Used only if Petrel cannot measure the file itself'),
  performer: optional(text).describe('Performer of an audio file'),
  title: optional(text).describe('Title of an audio file'),
  reply_to_message_id: replyTo,
});

type Params = z.output<typeof params>;
type Context = EndpointContext<User>;

const objects = { location: locationOf, contact: contactOf } as const;
type ObjectName = keyof typeof objects;
const kinds = [...personFileTypes, ...(Object.keys(objects) as ObjectName[])] as const;
type Kind = (typeof kinds)[number];

const wordless: readonly Kind[] = ['video_note', 'location', 'contact'];

/**
 * Returns the kind of content that the call sends, or undefined for a text. Throws `parameter_wrong` if the call has
 * several kinds of content, a text and a caption, or a text or caption that this kind of content does not allow.
 */
function kindOf(p: Params, { uploads }: Context): Kind | undefined {
  if (p.text !== undefined && p.caption !== undefined)
    fail('parameter_wrong', { name: 'text', what: 'absent if "caption" is given' });
  const kind = onlyKind(kinds, p, uploads);
  if (kind === undefined) return undefined;
  const words = p.caption !== undefined ? 'caption' : p.text !== undefined ? 'text' : undefined;
  if (words !== undefined && wordless.includes(kind))
    fail('parameter_wrong', { name: words, what: `absent if "${kind}" is given` });
  return kind;
}

const plain = (p: { readonly reply_to_message_id?: number | undefined }) => ({
  markup: null,
  flags: 0,
  replyTo: p.reply_to_message_id ?? 0,
  allowMissingReply: false,
});

async function sendAs(context: Context, p: Params): Promise<StoredMessage> {
  const { user, store } = context;
  const chat = chatOfUser(user.id, p.chat_id);
  const sender = userSender(user);
  const rest = plain(p);
  const kind = kindOf(p, context);
  if (kind === undefined) {
    const writer = { id: user.id, isBot: false, chat };
    const content = await textContent(store, writer, { ...p, text: p.text ?? fail('text_empty') });
    return store.messages.send(chat, sender, { content, ...rest });
  }
  if (kind === 'location' || kind === 'contact') {
    const object: ContentObject = objects[kind](p[kind] as never);
    return store.messages.send(chat, sender, { content: { object }, ...rest });
  }
  const side = kind === 'video_note' ? { width: p.length, height: p.length } : {};
  const words =
    p.caption === undefined
      ? { caption: p.text, caption_entities: p.entities ?? p.caption_entities }
      : { caption: p.caption };
  const given = { ...p, ...side, ...words };
  return sendFile(context, { chat, sender, rest }, kind satisfies MediaType, p[kind], given);
}

export const postMessage = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/messages',
  inRedis: true,
  summary: 'Sends a text, a file with an optional caption, a location or a contact.',
  params,
  errors: [
    ...writingErrors,
    ...fileErrors,
    'posting_not_allowed',
    'text_empty',
    'text_too_long',
    'video_note_invalid',
    'file_too_big',
  ],
  result: message,
  handler: async (context, p) => {
    const { user, store } = context;
    return viewOwn(store, chatOfUser(user.id, p.chat_id), user, await sendAs(context, p));
  },
});

export const postAlbum = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/albums',
  inRedis: true,
  summary:
    'Sends an album of 2 to 10 items. An album contains photos and videos, or only audio files, or only documents.',
  params: z.object({ chat_id: appChatId, media: albumMedia, reply_to_message_id: replyTo }),
  errors: [...writingErrors, ...fileErrors, 'posting_not_allowed', 'album_mixed'],
  result: messageList,
  handler: async (context, p) => {
    const { user, store } = context;
    const chat = chatOfUser(user.id, p.chat_id);
    const sent = await sendAlbum(context, { chat, sender: userSender(user), rest: plain(p) }, p.media);
    return viewAllOwn(store, chat, user, sent);
  },
});

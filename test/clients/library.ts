/** What both client libraries can be asked to do, so that one table of steps drives either. */
import type { Readable } from 'node:stream';
import type { Answer, TestBot } from '../support/service.js';

type Json = Answer['body'];
type Chat = number | string;

export type MediaKind = 'photo' | 'video' | 'audio' | 'document' | 'animation' | 'voice';

/** A URL, a `file_id`, or an upload. */
export type GivenFile = string | { readonly source: Buffer | Readable; readonly filename: string };

export interface GivenMedia {
  readonly type: MediaKind;
  readonly media: GivenFile;
  readonly caption?: string;
  readonly parse_mode?: 'HTML' | 'MarkdownV2';
}

export interface Command {
  readonly command: string;
  readonly description: string;
}

/** The library's own calls; what an error carries is seen by `LibraryBot.refusal`. */
export interface Calls {
  getMe(): Promise<Json>;
  sendMessage(chat: Chat, text: string, extra?: object): Promise<Json>;
  sendMedia(kind: MediaKind, chat: Chat, file: GivenFile, extra?: object): Promise<Json>;
  sendMediaGroup(chat: Chat, media: readonly GivenMedia[]): Promise<Json>;
  getFile(fileId: string): Promise<Json>;
  /** By the address that the library makes of a file. */
  download(fileId: string): Promise<Buffer>;
  editMessageText(chat: Chat, id: number, text: string, extra?: object): Promise<Json>;
  editMessageCaption(chat: Chat, id: number, caption: string, extra?: object): Promise<Json>;
  editMessageMedia(chat: Chat, id: number, media: GivenMedia): Promise<Json>;
  editMessageReplyMarkup(chat: Chat, id: number, inline_keyboard: Json): Promise<Json>;
  deleteMessage(chat: Chat, id: number): Promise<Json>;
  deleteMessages(chat: Chat, ids: number[]): Promise<Json>;
  forwardMessage(chat: Chat, from: Chat, id: number, extra?: object): Promise<Json>;
  forwardMessages(chat: Chat, from: Chat, ids: number[], extra?: object): Promise<Json>;
  copyMessage(chat: Chat, from: Chat, id: number, extra?: object): Promise<Json>;
  copyMessages(chat: Chat, from: Chat, ids: number[], extra?: object): Promise<Json>;
  pinChatMessage(chat: Chat, id: number, extra?: { disable_notification: boolean }): Promise<Json>;
  unpinChatMessage(chat: Chat, id?: number): Promise<Json>;
  unpinAllChatMessages(chat: Chat): Promise<Json>;
  getChat(chat: Chat): Promise<Json>;
  getChatMember(chat: Chat, user: number): Promise<Json>;
  getChatAdministrators(chat: Chat): Promise<Json>;
  /** Under whichever of its names the library knows it. */
  getChatMemberCount(chat: Chat): Promise<Json>;
  leaveChat(chat: Chat): Promise<Json>;
  answerCallbackQuery(id: string, text: string): Promise<Json>;
  setMyCommands(commands: readonly Command[], extra?: object): Promise<Json>;
  getMyCommands(extra?: object): Promise<Json>;
  deleteMyCommands(extra?: object): Promise<Json>;
  setMyName(name: string, language?: string): Promise<Json>;
  getMyName(language?: string): Promise<Json>;
  setMyDescription(text: string, language?: string): Promise<Json>;
  getMyDescription(language?: string): Promise<Json>;
  setMyShortDescription(text: string, language?: string): Promise<Json>;
  getMyShortDescription(language?: string): Promise<Json>;
}

/** What the library's own class of errors carries. */
export interface Refusal {
  readonly error_code: number;
  readonly description: string;
  readonly method: string;
  readonly retry_after: number | undefined;
}

/**
 * A bot that polls. Besides what the steps ask of it, it answers by the shorthands of its context:
 * `/photo <caption>` with an uploaded picture, `/album` with two in one album, `/say <text>` in reply to the command,
 * `/menu` with buttons `pick:a` and `pick:b`, of which the one pressed is told in the answer and takes the place of the text,
 * `/keep` by pinning the command, `/again` by forwarding it, `/twin` by copying it, `/stream <words>` by a message that
 * grows word by word, `/go` by leaving.
 */
export interface LibraryBot {
  readonly calls: Calls;
  /** Every update, as the library hands it to its middleware, in the order heard. */
  readonly heard: readonly Json[];
  /** Of second answers to callback queries, which the bot tries after each first. */
  readonly lateAnswers: readonly Refusal[];
  /** Seconds for which the bot was told to wait. */
  readonly waits: readonly number[];
  /** Expects that the call throws the library's own error. */
  refusal(call: Promise<unknown>): Promise<Refusal>;
  /** Calls again after the seconds that a 429 names, as a bot of this library does it. */
  patiently<T>(call: (calls: Calls) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** A client library, unmodified: only the address of the service is given to it. */
export interface Library {
  /** Resolves once it polls, for every type of update. */
  start(bot: TestBot, root: string, picture: Buffer): Promise<LibraryBot>;
}

export const allUpdates = [
  'message',
  'edited_message',
  'channel_post',
  'edited_channel_post',
  'callback_query',
  'my_chat_member',
  'chat_member',
] as const;

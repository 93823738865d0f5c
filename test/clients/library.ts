/** The interface of a client library for the table of steps. The same table works with grammY and Telegraf. */
import type { Readable } from 'node:stream';
import type { Answer, TestBot } from '../support/service.js';

type Json = Answer['body'];
type Chat = number | string;

export type MediaKind = 'photo' | 'video' | 'audio' | 'document' | 'animation' | 'voice';

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

/** Calls of bot methods through the library. `LibraryBot.refusal` reads the error of a refused call. */
export interface Calls {
  getMe(): Promise<Json>;
  sendMessage(chat: Chat, text: string, extra?: object): Promise<Json>;
  sendMedia(kind: MediaKind, chat: Chat, file: GivenFile, extra?: object): Promise<Json>;
  sendMediaGroup(chat: Chat, media: readonly GivenMedia[]): Promise<Json>;
  getFile(fileId: string): Promise<Json>;
  /** Downloads a file. The library itself builds the address of the file. */
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

export interface Refusal {
  readonly error_code: number;
  readonly description: string;
  readonly method: string;
  readonly retry_after: number | undefined;
}

/**
 * A bot that polls. It makes the calls of the steps, and answers these commands with the shorthands of its context:
 * - `/photo <caption>`: sends an uploaded picture; `/album`: sends two pictures in one album;
 * - `/say <text>`: replies to the command; `/stream <words>`: sends a message that grows word by word;
 * - `/menu`: sends buttons `pick:a` and `pick:b`. A press is answered with the choice, which also replaces the text;
 * - `/keep`, `/again`, `/twin`: pins, forwards or copies the command; `/go`: leaves the chat.
 */
export interface LibraryBot {
  readonly calls: Calls;
  /** All updates in the order in which they were received, as the library passes them to its middleware. */
  readonly received: readonly Json[];
  /** The errors of repeated answers. The bot answers each callback query twice, and the second answer is refused. */
  readonly lateAnswers: readonly Refusal[];
  /** How long 429 answers asked the bot to wait, in seconds. */
  readonly waits: readonly number[];
  refusal(call: Promise<unknown>): Promise<Refusal>;
  patiently<T>(call: (calls: Calls) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** An unmodified client library. Only the address of the service is set. */
export interface Library {
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

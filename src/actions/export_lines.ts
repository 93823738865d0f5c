/** Exports all data of a person as JSON lines (behaviour §14). Keeps only one page of one list in memory at a time. */

import type { Files } from '../files/files.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { allPages } from '../server/pages.js';
import type { StreamForm } from '../server/request.js';
import { type ChatState, userProfile } from '../store/chats/chats.js';
import type { Media } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Store } from '../store/store.js';
import type { Time } from '../time.js';
import { viewAudit, viewTransfer } from '../view/bots.js';
import { type Viewer, viewMessage } from '../view/messages.js';
import { viewChat, viewSelf, viewSession, viewUserToken } from '../view/users.js';
import { viewMute, viewPlace } from './chat_summary.js';
import { ownBot } from './own_bot.js';
import { viewAvatar } from './pictures.js';
import { personViewer } from './reading.js';
import { viewScheduled } from './scheduled_posts.js';
import { viewStickerSet } from './sticker_sets.js';

export type Line = Readonly<Record<string, unknown>> & { readonly kind: string };

const format = 1;
/** The line that keeps the connection open while a long search finds few results. */
export const waiting: Line = { kind: 'wait' };

export const exportForm: StreamForm = {
  contentType: 'application/x-ndjson',
  headers: [['Content-Disposition', 'attachment; filename="petrel-export.ndjson"']],
  filler: `${JSON.stringify(waiting)}\n`,
};

const mediaLine = (chat_id: number, message_id: number, media: Media): Line => ({
  kind: 'media',
  chat_id,
  message_id,
  type: media.type,
  file_id: media.id,
  ...(media.size === undefined ? {} : { file_size: media.size }),
  ...(media.name === undefined ? {} : { file_name: media.name }),
  ...(media.mime === undefined ? {} : { mime_type: media.mime }),
  ...(media.url === undefined ? {} : { url: media.url }),
});

/** Leaves token placeholders in the management bot's messages unfilled. */
function* messageLines(message: StoredMessage, viewer: Viewer, time: Time): Iterable<Line> {
  const { chat, id, record } = message;
  yield { kind: 'message', chat_id: chat.id, message: viewMessage(message, viewer, time) };
  if (record.content.media) yield mediaLine(chat.id, id, record.content.media);
}

/**
 * Returns messages of a chat, newest first. In direct chats and in chats of two people, returns all messages. In all
 * other chats, returns only the messages that the person sent.
 */
async function* chatLines(store: Store, { chat, profile }: ChatState, user: User): AsyncIterable<Line> {
  const viewer = await personViewer(store, chat, user);
  const isAll = isDirect(chat) || profile.t === 'person';
  const own = ({ record }: StoredMessage) => isAll || record.sender === user.id;
  for (let before = 0; ; ) {
    const found = (await store.history.list(chat, before, limits.page_size_max)) ?? [];
    for (const message of found) if (own(message)) yield* messageLines(message, viewer, store.time);
    const last = found.at(-1);
    if (last === undefined || last.id <= 1) return;
    before = last.id;
    if (!found.some(own)) yield waiting;
  }
}

async function* all<R>(...list: Parameters<typeof allPages<R>>): AsyncIterable<R> {
  for await (const rows of allPages(...list)) yield* rows;
}

const idOf = ({ id }: { readonly id: number }) => id;

async function* botLines(store: Store, files: Files, user: User): AsyncIterable<Line> {
  for await (const bot of all((after, limit) => store.bots.listOf(user.id, after, limit), idOf)) {
    yield { kind: 'bot', bot: await ownBot(store, files, bot, user) };
    for (const [scope, commands] of Object.entries(await store.bots.commands(bot.id)))
      yield { kind: 'commands', bot_id: bot.id, scope, commands };
    for await (const set of store.stickerSets.listOf(bot.id))
      yield { kind: 'sticker_set', bot_id: bot.id, sticker_set: viewStickerSet(files, set) };
    const events = (before: number, limit: number) => store.audit.list(bot.id, before, limit);
    for await (const event of all(events, idOf, limits.id_max))
      yield { kind: 'audit', bot_id: bot.id, event: viewAudit(event) };
  }
  const offers = (after: number, limit: number) => store.bots.transfersOf(user.id, after, limit);
  for await (const offer of all(offers, ({ bot_id }) => bot_id))
    yield { kind: 'transfer', transfer: viewTransfer(offer) };
}

async function ownOf(
  store: Store,
  chat: ChatRef,
  user: User,
  newest: number,
): Promise<Readonly<Record<string, unknown>>> {
  const [mark, mutes, places] = await Promise.all([
    store.exports.readMark(user.id, chat.id),
    store.mutes.of(user.id, [chat.id]),
    store.places.of(user.id, [chat.id]),
  ]);
  return {
    ...(mark ? { read_until: mark } : {}),
    ...viewMute(mutes.get(chat.id)),
    ...viewPlace(places, chat, newest),
  };
}

async function* directChats(store: Store, user: User): AsyncIterable<Line> {
  for (const chat of await store.chats.listOf(user.id)) {
    if (!isDirect(chat)) continue;
    const [found, viewer] = await Promise.all([store.chats.find(chat), personViewer(store, chat, user)]);
    if (!found) continue;
    const side = viewChat(viewer.bot ?? { id: chat.id, bot: 1, n: '' });
    const blocked = found.kind === 'blocked' ? { blocked: true } : {};
    const own = await ownOf(store, chat, user, found.newest);
    yield { kind: 'chat', chat: side, status: 'member', ...blocked, ...own };
    yield* chatLines(store, found, user);
  }
}

async function* sharedChats(store: Store, user: User): AsyncIterable<Line> {
  for await (const { chat_id: id, status, rights } of store.exports.memberships(user.id)) {
    const chat = { id, user: 0 };
    const found = await store.chats.find(chat);
    if (!found) continue;
    const may = Object.keys(rights).length === 0 ? {} : { rights };
    yield {
      kind: 'chat',
      chat: viewChat(found.profile, user.id),
      status,
      ...may,
      ...(await ownOf(store, chat, user, found.newest)),
    };
    yield* chatLines(store, found, user);
  }
}

export async function* exportLines(store: Store, files: Files, user: User): AsyncIterable<Line> {
  const { created_at, identities } = await store.exports.facts(user.id);
  yield { kind: 'begin', format, exported_at: store.time.nowSeconds() };
  yield { kind: 'profile', user: viewSelf(userProfile(user)), created_at, ...viewAvatar(files, user) };
  for (const identity of identities) yield { kind: 'identity', ...identity };
  for (const token of await store.users.tokens(user.id, 0, limits.user_tokens_max))
    yield { kind: 'token', token: viewUserToken(token) };
  for (const session of await store.sessions.list(user.id, ''))
    yield { kind: 'session', session: viewSession(session) };
  for (const { endpoint, created_at: made } of await store.push.subscriptions(user.id))
    yield { kind: 'push_subscription', endpoint, created_at: made };
  yield* botLines(store, files, user);
  for await (const { at, notice } of store.exports.notices(user.id)) yield { kind: 'notice', at, notice };
  yield* directChats(store, user);
  yield* sharedChats(store, user);
  const scheduled = (after: number, limit: number) => store.scheduledPosts.listBy(user.id, after, limit);
  for await (const post of all(scheduled, idOf))
    yield { kind: 'scheduled_post', scheduled_post: viewScheduled(post) };
  for (const { chat_id, text } of await store.personDrafts.list(user.id))
    if (text !== '') yield { kind: 'draft', chat_id, text };
  const blocked = (before: number, limit: number) => store.people.blocked(user.id, before, limit);
  for await (const { blocked_id, date } of all(blocked, idOf, limits.id_max))
    yield { kind: 'blocked_person', user_id: blocked_id, date };
  for await (const { post, emoji, date } of store.exports.reactions(user.id))
    yield { kind: 'reaction', post_id: post, emoji, date };
  for await (const { poll, options: option_ids, date } of store.exports.votes(user.id))
    yield { kind: 'vote', poll_id: String(poll), option_ids, date };
}

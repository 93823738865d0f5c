/** Builds, shows and copies polls (decision 0048). */
import { isPollClosed, pollIn } from '../content/poll.js';
import { ApiError, fail } from '../errors.js';
import { type EntityInput, formatText } from '../rules/entities/format.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { isBlank, isLongerThan } from '../rules/text.js';
import type { Entity, MessageRecord } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import { type ChatRef, isDirect } from '../store/core/keys.js';
import type { Poll, PollDraft, PollState } from '../store/core/poll_record.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { NewMessage } from '../store/messages/messages.js';
import type { Store } from '../store/store.js';
import { userSender } from './compose.js';

interface FormattedInput {
  readonly text: string;
  readonly mode?: string | undefined;
  readonly entities?: readonly EntityInput[] | undefined;
}

/**
 * Parses one of a poll's texts. Refuses long source texts before parsing them. Returns null if the text is too long.
 */
function parsed({ text, mode, entities }: FormattedInput, max: number) {
  const source = text.replaceAll('\r', '');
  if (source.length > limits.markup_length_max) return null;
  const found = formatText(source, mode, entities);
  return isLongerThan(found.text, max) ? null : found;
}

/**
 * Returns the question. Its formatting is dropped, because the Bot API allows only custom emoji in a question. Errors:
 * `poll_text_empty`, `poll_question_too_long`, `parse_mode_unsupported`, `entities_unparsable`.
 */
export function pollQuestion(given: FormattedInput): string {
  const max = limits.poll_question_length_max;
  const { text } = parsed(given, max) ?? fail('poll_question_too_long', { what: String(max) });
  return isBlank(text) ? fail('poll_text_empty') : text;
}

/**
 * Returns the options, without formatting. Errors: `poll_without_options`, `too_many_poll_options`,
 * `poll_text_empty`, `poll_option_too_long`, `parse_mode_unsupported`, `entities_unparsable`.
 */
export function pollOptions(given: readonly FormattedInput[]): string[] {
  const { poll_options_max, poll_option_length_max: max } = limits;
  if (given.length === 0) fail('poll_without_options');
  if (given.length > poll_options_max) fail('too_many_poll_options', { what: String(poll_options_max) });
  return given.map((option) => {
    const { text } = parsed(option, max) ?? fail('poll_option_too_long', { what: String(max) });
    return isBlank(text) ? fail('poll_text_empty') : text;
  });
}

/**
 * Returns the explanation of a quiz. Mentions by id are dropped. Errors: `poll_explanation_too_long`,
 * `parse_mode_unsupported`, `entities_unparsable`.
 */
export function pollExplanation(
  given: FormattedInput,
): Pick<PollDraft, 'explanation' | 'explanation_entities'> {
  const found = parsed(given, limits.poll_explanation_length_max) ?? fail('poll_explanation_too_long');
  if (found.text.split('\n').length > limits.poll_explanation_lines_max) fail('poll_explanation_too_long');
  if (isBlank(found.text)) return {};
  const entities = (found.entities as readonly Entity[]).filter(({ type }) => type !== 'text_mention');
  return { explanation: found.text, ...(entities.length === 0 ? {} : { explanation_entities: entities }) };
}

/** Refuses a poll that is not allowed in the chat. Error: `poll_public_in_channel`. */
export async function assertPollAllowed(store: Store, chat: ChatRef, named: boolean): Promise<void> {
  if (!named || isDirect(chat)) return;
  const found = await store.chats.find(chat);
  if (found?.kind === 'channel' || found?.kind === 'private') fail('poll_public_in_channel');
}

/**
 * Sends messages with new polls. The polls are created first, because the messages contain their ids. If the messages
 * are refused, the polls are deleted. If it is unknown whether the messages were sent, the polls are kept.
 */
export async function withNewPolls<T>(
  store: Store,
  send: (create: (chat: ChatRef, draft: PollDraft) => Promise<Poll>) => Promise<T>,
): Promise<T> {
  const created: Poll[] = [];
  try {
    return await send(async (chat, draft) => {
      const poll = await store.votes.create(chat, draft);
      created.push(poll);
      return poll;
    });
  } catch (error) {
    if (error instanceof ApiError && (error.code === 400 || error.code === 403))
      await Promise.all(created.map((poll) => store.votes.drop(poll).catch(() => undefined)));
    throw error;
  }
}

/** Returns whether a bot may copy a poll. A bot may copy a quiz only if it knows the answer. */
const isCopyable = (poll: Poll, bot: number, now: number): boolean =>
  !poll.quiz || poll.bot === bot || isPollClosed(poll, now);

/** Returns whether a bot may copy this message. `now` is the Unix time in seconds. */
export const mayCopy = ({ record }: Pick<StoredMessage, 'record'>, bot: number, now: number): boolean => {
  const poll = pollIn(record.content);
  return poll === undefined || isCopyable(poll, bot, now);
};

/**
 * Returns the draft of the copy, which is a new, open poll owned by the copying bot. If the original has already ended,
 * the copy has no end time.
 */
function draftOfCopy(
  { id: _id, state: _state, closed: _closed, close_date, ...poll }: Poll,
  bot: number,
  now: number,
): PollDraft {
  const draft: PollDraft = { ...poll, bot };
  if (poll.open_period !== undefined) return { ...draft, close_date: now + poll.open_period };
  return close_date === undefined || close_date <= now ? draft : { ...draft, close_date };
}

export const withCopiedPolls = (
  messages: readonly NewMessage[],
  { bot, now }: { readonly bot: number; readonly now: number },
  create: (draft: PollDraft) => Promise<Poll>,
): Promise<NewMessage[]> =>
  Promise.all(
    messages.map(async (message) => {
      const poll = message.origin?.forward ? undefined : pollIn(message.content);
      if (poll === undefined) return message;
      return {
        ...message,
        content: { ...message.content, object: await create(draftOfCopy(poll, bot, now)) },
      };
    }),
  );

const noState: PollState = { voters: 0, stopped: true, counts: [], own: [] };

/**
 * Returns the state of a poll. While Postgres is unavailable, returns undefined if the viewer is a person, so that
 * people can still read the chat.
 */
async function stateOf(store: Store, poll: Poll, who: Viewing): Promise<PollState | undefined> {
  try {
    return await store.votes.state(poll, who);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.kind === 'poll_not_found') return noState;
    if (error.kind === 'unavailable' && !who.isBot) return undefined;
    throw error;
  }
}

interface Viewing {
  readonly id: number;
  readonly isBot: boolean;
}

async function shown(store: Store, who: Viewing, record: MessageRecord): Promise<MessageRecord> {
  const poll = pollIn(record.content);
  if (poll === undefined) return record;
  const state = await stateOf(store, poll, who);
  if (state === undefined) return record;
  const object = { ...poll, state };
  return { ...record, content: { ...record.content, object } };
}

export async function withResults(
  store: Store,
  who: Viewing,
  messages: readonly StoredMessage[],
): Promise<readonly StoredMessage[]> {
  const hasPoll = ({ record, reply }: StoredMessage) =>
    record.content.object?.type === 'poll' || reply?.record.content.object?.type === 'poll';
  if (!messages.some(hasPoll)) return messages;
  return Promise.all(
    messages.map(async (message) => {
      if (!hasPoll(message)) return message;
      const { record, reply } = message;
      return {
        ...message,
        record: await shown(store, who, record),
        reply: reply && { ...reply, record: await shown(store, who, reply.record) },
      };
    }),
  );
}

/**
 * Reads a poll that the person sees in a chat. Errors: `message_not_found`, `message_not_poll`, and the errors of
 * access to the chat.
 */
export async function seenPoll(store: Store, user: User, chat: ChatRef, messageId: number): Promise<Poll> {
  const [message] = await store.messages.readMany(chat, userSender(user), [messageId]);
  return pollIn((message ?? fail('message_not_found')).record.content) ?? fail('message_not_poll');
}

/**
 * Refuses a vote in a direct chat with a blocked bot or in a closed chat of two people. Messages to such chats are
 * refused too.
 */
export async function assertVotingAllowed(store: Store, chat: ChatRef): Promise<void> {
  const found = await store.chats.find(chat);
  if (found?.kind === 'blocked') fail('bot_blocked_by_you');
  if (found?.kind === 'closed') fail('cant_write_to_person');
}

/**
 * Votes as a person. An empty list of options retracts the vote. Errors: `vote_options_wrong`, `poll_closed`,
 * `vote_final`, `poll_not_found`.
 */
export async function castVote(
  store: Store,
  user: User,
  poll: Poll,
  given: readonly number[],
): Promise<Poll> {
  const options = [...new Set(given)].sort((a, b) => a - b);
  if (options.some((option) => option < 0 || option >= poll.options.length)) fail('vote_options_wrong');
  if (options.length > 1 && !poll.multiple) fail('vote_options_wrong');
  if (poll.closed) fail('poll_closed');
  if (options.length === 0 && poll.final) fail('vote_final');
  const bot = await store.bots.find(poll.bot);
  const profile = bot === null ? null : userSender(user).profile;
  return { ...poll, state: await store.votes.cast(poll, { id: user.id, profile }, options) };
}

/** The records of polls (decision 0048). */
import { type ContentObject, type Entity, pack } from './codec.js';

/** The definition of a poll, before the poll has an id. */
export interface PollDraft extends ContentObject {
  readonly type: 'poll';
  /** id of the bot that sent the poll */
  readonly bot: number;
  readonly question: string;
  readonly options: readonly string[];
  /** set if the bot gets the answer of each person */
  readonly named?: true;
  readonly quiz?: true;
  readonly multiple?: true;
  /** set if votes cannot be changed */
  readonly final?: true;
  /** the correct options of a quiz */
  readonly correct?: readonly number[];
  readonly explanation?: string;
  readonly explanation_entities?: readonly Entity[];
  readonly open_period?: number;
  readonly close_date?: number;
  /** set if the poll was closed when it was sent */
  readonly closed?: true;
}

/** The state of a poll as one person or bot sees it. */
export interface PollState {
  readonly voters: number;
  /** whether the poll was stopped */
  readonly stopped: boolean;
  readonly counts: readonly number[];
  /** the person's own options; absent for a bot */
  readonly own?: readonly number[];
}

export interface Poll extends PollDraft {
  readonly id: string;
  /** The state when the message was read. In a forward it is also stored, for updates about the forward. */
  readonly state?: PollState;
}

/** A poll as Postgres stores it. Scripts never read this form. */
export type PollRecord = [chat: string, bot: number, poll: Poll];
/** The number of voters, 1 for a stopped poll, and the votes for each option. */
export type ResultsRecord = [voters: number, stopped: number, ...counts: number[]];
/** The options of one person, separated by spaces, and the Unix time of the vote in seconds. */
export type VoteRecord = [options: string, date: number];

export const readOptions = (text: string): number[] => (text === '' ? [] : text.split(' ').map(Number));

export const readState = (
  [voters, stopped, ...counts]: ResultsRecord,
  own?: readonly number[],
): PollState => ({
  ...{ voters, stopped: stopped === 1, counts },
  ...(own === undefined ? {} : { own }),
});

/** Parses the content of an update about a poll. */
export function readPoll(extra: unknown): Poll {
  const [poll, results] = extra as [Poll, ResultsRecord];
  return { ...poll, state: readState(results) };
}

/** Parses the content of an update about an answer. */
export const readAnswer = (extra: unknown): number[] => readOptions((extra as [string])[0]);

/** When the poll closes, in ms; 0 for never. */
export const closesAt = ({ close_date = 0 }: PollDraft): number => close_date * 1_000;

/** Builds the fields of a poll in Redis that never change. `lua/lib/poll.lua` describes the fields. */
export const pollFields = ([chat, bot, poll]: PollRecord): Array<string | Buffer> => [
  ...['c', chat, 'b', String(bot), 'd', pack(poll), 'k', String(poll.options.length)],
  ...['e', String(poll.close_date ?? 0), 'q', poll.final ? '1' : '', 'o', poll.named ? '1' : ''],
  ...(poll.closed ? ['z', '1'] : []),
];

/** Builds the fields of a poll in Redis that votes change. */
export const resultFields = ([voters, stopped, ...counts]: ResultsRecord): string[] => [
  ...['u', String(voters), ...(stopped === 1 ? ['z', '1'] : [])],
  ...counts.flatMap((count, i) => [`n:${i}`, String(count)]),
];

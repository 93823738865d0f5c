/** The records of polls (decision 0048). */
import { type ContentObject, type Entity, pack } from './codec.js';

export interface PollDraft extends ContentObject {
  readonly type: 'poll';
  readonly bot: number;
  readonly question: string;
  readonly options: readonly string[];
  readonly named?: true;
  readonly quiz?: true;
  readonly multiple?: true;
  readonly final?: true;
  readonly correct?: readonly number[];
  readonly explanation?: string;
  readonly explanation_entities?: readonly Entity[];
  readonly open_period?: number;
  readonly close_date?: number;
  readonly closed?: true;
}

export interface PollState {
  readonly voters: number;
  readonly stopped: boolean;
  readonly counts: readonly number[];
  /** The options for which the viewing person voted. Absent if a bot views the poll. */
  readonly own?: readonly number[];
}

export interface Poll extends PollDraft {
  readonly id: string;
  /**
   * The state of the poll when its message was read. A forwarded message also stores this state, because updates about
   * the forwarded message contain it.
   */
  readonly state?: PollState;
}

/** A poll as Postgres stores it. Scripts never read this form. */
export type PollRecord = [chat: string, bot: number, poll: Poll];
/** The results of a poll. `stopped` is 1 for a stopped poll. `counts` are the votes for each option. */
export type ResultsRecord = [voters: number, stopped: number, ...counts: number[]];
/** A vote: the options, separated by spaces, and the date as Unix time in seconds. */
export type VoteRecord = [options: string, date: number];

export const readOptions = (text: string): number[] => (text === '' ? [] : text.split(' ').map(Number));

export const readState = (
  [voters, stopped, ...counts]: ResultsRecord,
  own?: readonly number[],
): PollState => ({
  ...{ voters, stopped: stopped === 1, counts },
  ...(own === undefined ? {} : { own }),
});

export function readPoll(extra: unknown): Poll {
  const [poll, results] = extra as [Poll, ResultsRecord];
  return { ...poll, state: readState(results) };
}

export const readAnswer = (extra: unknown): number[] => readOptions((extra as [string])[0]);

/** Returns when the poll closes, as Unix time in ms, or 0 if it never closes by itself. */
export const closesAt = ({ close_date = 0 }: PollDraft): number => close_date * 1_000;

export const pollFields = ([chat, bot, poll]: PollRecord): Array<string | Buffer> => [
  ...['c', chat, 'b', String(bot), 'd', pack(poll), 'k', String(poll.options.length)],
  ...['e', String(poll.close_date ?? 0), 'q', poll.final ? '1' : '', 'o', poll.named ? '1' : ''],
  ...(poll.closed ? ['z', '1'] : []),
];

export const resultFields = ([voters, stopped, ...counts]: ResultsRecord): string[] => [
  ...['u', String(voters), ...(stopped === 1 ? ['z', '1'] : [])],
  ...counts.flatMap((count, i) => [`n:${i}`, String(count)]),
];

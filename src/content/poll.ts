/**
 * Defines a poll. The message contains the poll's definition. The votes are in Redis and in the table `poll_results`
 * (decision 0048).
 */
import { z } from 'zod';
import type { ContentObject } from '../store/core/codec.js';
import type { Poll } from '../store/core/poll_record.js';
import type { ObjectKind } from './kind.js';

const entityFields = z
  .strictObject({
    type: z.string(),
    offset: z.int().min(0).describe('UTF-16 code units'),
    length: z.int().min(0).describe('UTF-16 code units'),
    url: z.string().optional(),
    language: z.string().optional(),
    custom_emoji_id: z.string().optional(),
  })
  .meta({
    id: 'PollEntity',
    description: 'A formatted range of the explanation of a quiz. Its type is never `text_mention`.',
  });

const optionFields = z
  .strictObject({
    persistent_id: z.string().describe('Id of the option'),
    text: z.string(),
    voter_count: z.int().min(0).describe('Votes. People see 0 until they have voted or the poll is closed'),
  })
  .meta({ id: 'PollOption', description: 'An option of a poll.' });

export const pollFields = z
  .strictObject({
    id: z.string().describe('Id of the poll. A forwarded message contains the same poll'),
    question: z.string(),
    options: z.array(optionFields).min(1),
    total_voter_count: z.int().min(0),
    is_closed: z.boolean(),
    is_anonymous: z.boolean().describe('False if the bot gets the answer from each person'),
    type: z.enum(['regular', 'quiz']),
    allows_multiple_answers: z.boolean(),
    allows_revoting: z.boolean().describe('Whether people can change and retract their votes'),
    members_only: z.literal(false),
    correct_option_id: z
      .int()
      .min(0)
      .optional()
      .describe(
        'First correct option of a quiz. Present for the bot that sent the quiz, for people who have voted, and after the end',
      ),
    correct_option_ids: z.array(z.int().min(0)).optional(),
    explanation: z.string().optional().describe('Present together with the correct options'),
    explanation_entities: z.array(entityFields).optional(),
    open_period: z.int().positive().optional().describe('seconds'),
    close_date: z.int().positive().optional().describe('Unix time in seconds'),
    chosen_option_ids: z
      .array(z.int().min(0))
      .optional()
      .describe('Options for which the caller voted. Only in the application API'),
  })
  .meta({ id: 'Poll', description: 'A poll with its results.' });

/** `now` is the Unix time in seconds. */
export const isPollClosed = ({ closed, close_date, state }: Poll, now: number): boolean =>
  closed === true || state?.stopped === true || (close_date !== undefined && close_date <= now);

/** Returns the correct option and the explanation of a quiz. Only some viewers may see them. */
const viewSolution = ({ correct, explanation, explanation_entities: marks }: Poll) => ({
  ...(correct === undefined ? {} : { correct_option_id: correct[0], correct_option_ids: correct }),
  ...(explanation === undefined ? {} : { explanation }),
  ...(marks === undefined ? {} : { explanation_entities: marks }),
});

/** `now` is the Unix time in seconds. */
export function viewPoll(poll: Poll, forPeople: boolean, bot: number | undefined, now: number) {
  const { id, question, options, open_period, close_date, state } = poll;
  const closed = isPollClosed(poll, now);
  const own = forPeople ? (state?.own ?? []) : undefined;
  const sees = closed || own === undefined || own.length > 0;
  const knows = closed || (own === undefined ? bot === poll.bot : own.length > 0);
  return {
    id,
    question,
    options: options.map((text, i) => ({
      persistent_id: String(i),
      text,
      voter_count: sees ? (state?.counts[i] ?? 0) : 0,
    })),
    total_voter_count: state?.voters ?? 0,
    is_closed: closed,
    is_anonymous: poll.named !== true,
    type: poll.quiz ? 'quiz' : 'regular',
    allows_multiple_answers: poll.multiple === true,
    allows_revoting: poll.final !== true,
    members_only: false,
    ...(knows ? viewSolution(poll) : {}),
    ...(open_period === undefined ? {} : { open_period }),
    ...(close_date === undefined ? {} : { close_date }),
    ...(own === undefined ? {} : { chosen_option_ids: own }),
  };
}

export const poll: ObjectKind<Poll> = {
  sign: '📊',
  fields: { poll: pollFields.optional() },
  view: (stored, forPeople, time, bot) => ({ poll: viewPoll(stored, forPeople, bot, time.nowSeconds()) }),
  title: ({ question }) => question,
};

export const pollIn = ({ object }: { readonly object?: ContentObject }): Poll | undefined =>
  object?.type === 'poll' ? (object as Poll) : undefined;

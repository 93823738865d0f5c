import { z } from 'zod';
import { botSender, chatOfBot } from '../../actions/compose.js';
import {
  assertPollAllowed,
  pollExplanation,
  pollOptions,
  pollQuestion,
  withNewPolls,
} from '../../actions/polls.js';
import { objectErrors, objectParams, sendObject } from '../../actions/send_object.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import type { PollDraft } from '../../store/core/poll_record.js';
import { message } from '../../wire/results.js';
import {
  answer,
  boolean,
  entities,
  entityInput,
  integer,
  json,
  optional,
  parseMode,
  text,
  unsupported,
} from '../../wire/schema.js';

const unparsable = { error: answer('poll_options_unparsable') };

const option = z.union(
  [
    z.string(),
    z.object({
      text: z.string(),
      text_parse_mode: z.string().optional(),
      text_entities: z.array(entityInput).optional(),
    }),
  ],
  unparsable,
);

const { poll_open_s_min: openMin, poll_open_s_max: openMax } = limits;
const openPeriod = `an integer from ${openMin} to ${openMax}`;

/** Defines a Bot API flag that Petrel supports only with the value false. */
const off = (what: string) =>
  optional(boolean.refine((given) => !given, { error: `false: ${what}` })).describe(`Not supported: ${what}`);

const params = z.object({
  ...objectParams,
  question: optional(text).describe(`Question of 1 to ${limits.poll_question_length_max} characters`),
  question_parse_mode: parseMode,
  question_entities: entities,
  options: optional(json(z.array(option, unparsable))).describe(
    `1 to ${limits.poll_options_max} options: objects with \`text\`, or texts of 1 to ${limits.poll_option_length_max} characters`,
  ),
  is_anonymous: optional(boolean).describe(
    'False if the bot gets the answer of each person; true by default',
  ),
  type: optional(z.enum(['regular', 'quiz'], { error: answer('poll_type_unsupported') })).describe(
    '`quiz` or `regular` (default)',
  ),
  allows_multiple_answers: optional(boolean).describe(
    'Whether people can choose several options; false by default',
  ),
  allows_revoting: optional(boolean).describe(
    'Whether people can change and retract their votes; true by default, except in a quiz',
  ),
  correct_option_id: optional(integer()).describe('Index of the correct option of a quiz'),
  correct_option_ids: optional(json(z.array(integer(), { error: 'an array of integers' }))).describe(
    'Ascending indexes of the correct options, instead of `correct_option_id`',
  ),
  explanation: optional(text).describe(
    `Shown after a vote in a quiz; up to ${limits.poll_explanation_length_max} characters on up to ${limits.poll_explanation_lines_max} lines`,
  ),
  explanation_parse_mode: parseMode,
  explanation_entities: entities,
  open_period: optional(
    integer(openPeriod).pipe(
      z.number().min(openMin, { error: openPeriod }).max(openMax, { error: openPeriod }),
    ),
  ).describe('How long the poll is open, in seconds'),
  close_date: optional(integer()).describe(
    `Unix time in seconds at which the poll closes, ${openMin} s to ${openMax} s from now. Replaces \`open_period\``,
  ),
  is_closed: optional(boolean).describe('Sends a closed poll, as a preview'),
  shuffle_options: off('a random order of the options'),
  hide_results_until_closes: off('hidden results'),
  allow_adding_options: off('options added by people'),
  members_only: off('a vote limited to members of long standing'),
  country_codes: unsupported('votes limited to countries'),
  description: unsupported('a description of a poll'),
  media: unsupported('media in a poll'),
  explanation_media: unsupported('media in an explanation'),
});
type Params = z.infer<typeof params>;

/**
 * Returns when the poll closes. `now` is the Unix time in seconds. Throws `parameter_wrong` if the poll would close too
 * early or too late, or if both `open_period` and `close_date` are given.
 */
function endOf(
  { open_period, close_date }: Params,
  now: number,
): Pick<PollDraft, 'open_period' | 'close_date'> {
  const wrong = (what: string) => fail('parameter_wrong', { name: 'close_date', what });
  if (open_period !== undefined) {
    if (close_date !== undefined) wrong('absent if open_period is given');
    return { open_period, close_date: now + open_period };
  }
  if (close_date === undefined) return {};
  if (close_date < now + openMin || close_date > now + openMax)
    wrong(`${openMin} to ${openMax} seconds in the future`);
  return { close_date };
}

/** Returns the correct options. Throws `poll_correct_option_wrong`. */
function correctOf(p: Params, count: number): number[] {
  const correct = p.correct_option_ids ?? (p.correct_option_id === undefined ? [] : [p.correct_option_id]);
  const wrong = correct.some((id, i) => id < 0 || id >= count || (i > 0 && id <= (correct[i - 1] as number)));
  const many = correct.length > 1 && !p.allows_multiple_answers;
  return wrong || many || correct.length === 0 ? fail('poll_correct_option_wrong') : correct;
}

/** Builds the poll to send. The checks have the same order as in the reference server. */
function draftOf(bot: number, p: Params, now: number): PollDraft {
  const question = pollQuestion({
    text: p.question ?? '',
    mode: p.question_parse_mode,
    entities: p.question_entities,
  });
  const options = pollOptions(
    (p.options ?? []).map((each) =>
      typeof each === 'string'
        ? { text: each }
        : { text: each.text, mode: each.text_parse_mode, entities: each.text_entities },
    ),
  );
  const quiz = p.type === 'quiz';
  const correct = quiz ? correctOf(p, options.length) : null;
  const explanation = quiz
    ? pollExplanation({
        text: p.explanation ?? '',
        mode: p.explanation_parse_mode,
        entities: p.explanation_entities,
      })
    : {};
  return {
    ...{ type: 'poll', bot, question, options },
    ...(p.is_anonymous === false ? { named: true } : {}),
    ...(p.allows_multiple_answers ? { multiple: true } : {}),
    ...((p.allows_revoting ?? !quiz) ? {} : { final: true }),
    ...(correct === null ? {} : { quiz: true, correct, ...explanation }),
    ...endOf(p, now),
    ...(p.is_closed ? { closed: true } : {}),
  };
}

export const sendPoll = defineMethod({
  name: 'sendPoll',
  effect: 'grow',
  summary: 'Sends a poll or a quiz.',
  params,
  errors: [
    ...objectErrors,
    'parse_mode_unsupported',
    'entities_unparsable',
    'poll_text_empty',
    'poll_question_too_long',
    'poll_options_unparsable',
    'poll_without_options',
    'too_many_poll_options',
    'poll_option_too_long',
    'poll_type_unsupported',
    'poll_correct_option_wrong',
    'poll_explanation_too_long',
    'poll_public_in_channel',
  ],
  result: message,
  handler: async (context, p) => {
    const { bot, store } = context;
    const draft = draftOf(botSender(bot).id, p, store.time.nowSeconds());
    const chat = chatOfBot(bot.id, p.chat_id);
    await assertPollAllowed(store, chat, draft.named === true);
    return withNewPolls(store, (create) => sendObject(context, () => create(chat, draft), p));
  },
});

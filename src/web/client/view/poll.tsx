/**
 * Shows a poll in a message or post. People vote here, and see the results once they have voted or the poll is closed.
 */
import { useEffect, useState } from 'react';
import { call, get } from '../api.js';
import { attempt } from '../failures.js';
import type { Poll } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { RichText } from './text.js';

interface PollProps {
  chat: number;
  message: number;
  poll: Poll;
}

/** How often an open poll is loaded again while it is shown, in ms. */
const refresh_ms = 10_000;

const kindText = (poll: Poll) =>
  poll.is_closed
    ? t('poll_final')
    : poll.type === 'quiz'
      ? t('poll_quiz')
      : t(poll.is_anonymous ? 'poll_anonymous' : 'poll_named');

/**
 * Returns the state of a poll and a function that votes. Loads the poll repeatedly while it is open and the page is
 * visible.
 */
function usePoll({ chat, message, poll }: PollProps) {
  const path = `/api/chats/${chat}/messages/${message}/poll`;
  const [present, setPresent] = useState(poll);
  const [busy, setBusy] = useState(false);
  useEffect(() => setPresent(poll), [poll]);
  const open = !present.is_closed;
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(() => {
      // Ignores failures, because the poll is loaded again soon.
      if (!document.hidden) get<Poll>(path).then(setPresent, () => undefined);
    }, refresh_ms);
    return () => clearInterval(timer);
  }, [open, path]);
  const vote = async (option_ids: readonly number[]) => {
    setBusy(true);
    await attempt(async () => setPresent(await call<Poll>('POST', path, { option_ids })));
    setBusy(false);
  };
  return { present, busy, vote };
}

/** Shows the options of a poll before the person has voted. */
function Choices({ poll, busy, vote }: { poll: Poll; busy: boolean; vote: (ids: number[]) => void }) {
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const several = poll.allows_multiple_answers;
  const toggle = (id: number) =>
    setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return (
    <>
      {poll.options.map(({ text, persistent_id }, id) => (
        <button
          type="button"
          key={persistent_id}
          className="poll-choice"
          disabled={busy}
          aria-pressed={several ? chosen.includes(id) : undefined}
          onClick={() => (several ? toggle(id) : vote([id]))}
        >
          <span className={several ? 'poll-mark square' : 'poll-mark'}>
            {chosen.includes(id) && <Icon name="check" size={14} />}
          </span>
          <span dir="auto">{text}</span>
        </button>
      ))}
      {several && (
        <button
          type="button"
          className="poll-action"
          disabled={busy || chosen.length === 0}
          onClick={() => vote([...chosen])}
        >
          {t('poll_vote')}
        </button>
      )}
    </>
  );
}

/**
 * Returns the mark of an option in the results: correct answer, the person's wrong answer, the person's vote, or null
 * for no mark.
 */
function markOf({ correct_option_ids: correct, chosen_option_ids: own = [] }: Poll, id: number) {
  if (correct?.includes(id)) return 'correct';
  if (!own.includes(id)) return null;
  return correct ? 'wrong' : 'own_vote';
}

function Mark({ mark }: { mark: NonNullable<ReturnType<typeof markOf>> }) {
  return (
    <>
      <Icon name={mark === 'wrong' ? 'close' : 'check'} size={14} />
      <span className="sr-only">{t(`poll_${mark}`)}</span>
    </>
  );
}

function Results({ poll }: { poll: Poll }) {
  const { options, total_voter_count: voters } = poll;
  return (
    <ul className="poll-results">
      {options.map(({ text, voter_count, persistent_id }, id) => {
        const share = voters === 0 ? 0 : Math.round((100 * voter_count) / voters);
        const mark = markOf(poll, id);
        return (
          <li key={persistent_id} className={`poll-result ${mark ?? ''}`}>
            <strong>{share}%</strong>
            <span dir="auto">
              {text} {mark && <Mark mark={mark} />}
            </span>
            <span className="poll-bar" aria-hidden="true">
              <span style={{ width: `${share}%` }} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

export function PollCard(props: PollProps) {
  const { present: poll, busy, vote } = usePoll(props);
  const voted = (poll.chosen_option_ids ?? []).length > 0;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be announced as a form
    <div className="poll" role="group" aria-label={poll.question}>
      <strong className="poll-question" dir="auto">
        {poll.question}
      </strong>
      <small>{kindText(poll)}</small>
      {voted || poll.is_closed ? (
        <Results poll={poll} />
      ) : (
        <Choices poll={poll} busy={busy} vote={(ids) => void vote(ids)} />
      )}
      {poll.explanation && (
        <p className="poll-explanation" dir="auto">
          <RichText text={poll.explanation} entities={poll.explanation_entities} />
        </p>
      )}
      <small>{t('poll_voters', { n: poll.total_voter_count })}</small>
      {voted && !poll.is_closed && poll.allows_revoting && (
        <button type="button" className="poll-action" disabled={busy} onClick={() => void vote([])}>
          {t('poll_retract')}
        </button>
      )}
    </div>
  );
}

/** Holds the state of inline buttons from the press until the bot answers. */
import { call } from '../api.js';
import { reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { Signal } from '../signal.js';
import type { Button, CallbackAnswerEvent, Message } from '../types.js';
import { t } from '../words.js';

type State = 'pending' | 'answered';

interface Press {
  readonly place: string;
  readonly timer: ReturnType<typeof setTimeout>;
}

/**
 * How long to wait for the bot's answer. After this time, the button can be pressed again, and a later answer is not
 * shown.
 */
const answer_ms_max = 20_000;
const answered_ms = 1_200;

class Presses extends Signal {
  readonly states = new Map<string, State>();
  readonly byQuery = new Map<string, Press>();
  /** Answers to button presses that this window does not know, or does not know yet (see `noteAnswer`). */
  readonly early = new Map<string, CallbackAnswerEvent>();

  set(place: string, state: State | null): void {
    if (state === null) this.states.delete(place);
    else this.states.set(place, state);
    this.changed();
  }
}

export const presses = new Presses();

/**
 * Returns a key for a button. The key contains the edit date of the message, because an edit may put another button in
 * the same place.
 */
export const placeOf = (chat: number, message: Message, button: Button, row: number, column: number) =>
  [chat, message.message_id, message.edit_date ?? 0, row, column, button.callback_data, button.text].join(
    '/',
  );

function show(place: string, { text, show_alert, url }: CallbackAnswerEvent): void {
  presses.set(place, 'answered');
  setTimeout(() => {
    if (presses.states.get(place) === 'answered') presses.set(place, null);
  }, answered_ms);
  if (text) say(text, show_alert ? 'alert' : 'note');
  if (url && /^https?:\/\//i.test(url)) say(t('bot_opens', { host: new URL(url).host }), 'alert', url);
}

export async function press(chat: number, message: number, data: string, place: string): Promise<void> {
  if (presses.states.get(place) === 'pending') return;
  presses.set(place, 'pending');
  try {
    const { callback_query_id: query } = await call<{ callback_query_id: string }>(
      'POST',
      `/api/chats/${chat}/messages/${message}/callback`,
      { data },
    );
    const early = presses.early.get(query);
    if (early) {
      presses.early.delete(query);
      show(place, early);
      return;
    }
    const timer = setTimeout(() => {
      presses.byQuery.delete(query);
      presses.set(place, null);
      say(t('bot_silent'));
    }, answer_ms_max);
    presses.byQuery.set(query, { place, timer });
  } catch (error) {
    presses.set(place, null);
    say(reasonOf(error));
  }
}

export function noteAnswer(answer: CallbackAnswerEvent): void {
  const query = answer.callback_query_id;
  const pressed = presses.byQuery.get(query);
  if (!pressed) {
    // The answer belongs to no known press. Either the call that pressed the button has not returned yet, or the button
    // was pressed in another window.
    presses.early.set(query, answer);
    setTimeout(() => presses.early.delete(query), answer_ms_max);
    return;
  }
  presses.byQuery.delete(query);
  clearTimeout(pressed.timer);
  show(pressed.place, answer);
}

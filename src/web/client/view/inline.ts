/**
 * Loads the results of a bot while the person types `@bot query`. A query is sent after a short pause. Its results are
 * kept until the text changes.
 */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { call, get } from '../api.js';
import { randomName } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { chats, historyOf } from '../model/chats.js';
import { say } from '../notes.js';
import { go } from '../route.js';
import type { InlineAnswer, InlineResult, Message, Named } from '../types.js';

const pause_ms = 300;
const names_max = 200;

/** The bot for each username in lower case. Null if there is no bot with inline mode that has this username. */
const bots = new Map<string, Promise<Named | null>>();

function findBot(username: string): Promise<Named | null> {
  const name = username.toLowerCase();
  const known = bots.get(name);
  if (known) return known;
  const found = get<Named>(`/api/names/${name}`).then((named) =>
    named.inline_placeholder === undefined ? null : named,
  );
  if (bots.size >= names_max) bots.clear();
  bots.set(name, found);
  // Does not cache a failed lookup, because the lookup may succeed later: somebody may take the name, or the connection
  // may return.
  found.catch(() => bots.delete(name));
  return found;
}

/** Divides a text of the form `@bot query`. Returns null for any other text. */
export const queryIn = (text: string): { username: string; query: string } | null => {
  const [, username, query] = /^@(\w{3,32})\s([\s\S]*)$/.exec(text) ?? [];
  return username === undefined ? null : { username, query: (query ?? '').trim() };
};

export interface InlineState {
  bot: Named;
  query: string;
  /**
   * The results, each with the id of the answer that contained it. Further results come in another answer with another
   * id.
   */
  results: ReadonlyArray<{ answer: string; result: InlineResult }>;
  button?: InlineAnswer['button'];
  next?: string | undefined;
  pending: boolean;
  failure: string;
}

/**
 * Sends the query in `text` to the bot that `text` names, and returns the bot's results. Returns null while `text` is
 * not an inline query.
 */
function useAnswers(chat: number, text: string | null) {
  const [state, setState] = useState<InlineState | null>(null);
  const asking = useRef<AbortController>(null);
  const parsed = text === null ? null : queryIn(text);
  const { username = '', query = '' } = parsed ?? {};

  async function ask(bot: Named, offset: string, before: InlineState['results']) {
    asking.current?.abort();
    const mine = new AbortController();
    asking.current = mine;
    const base = { bot, query, results: before, failure: '' };
    setState((former) => ({ ...base, button: former?.button, pending: true }));
    try {
      const answer = await call<InlineAnswer>(
        'POST',
        `/api/chats/${chat}/inline_query`,
        { bot_id: bot.id, query, offset },
        { signal: mine.signal },
      );
      const own = answer.results.map((result) => ({ answer: answer.inline_query_id, result }));
      const more = { results: [...before, ...own], next: answer.next_offset, button: answer.button };
      setState({ ...base, ...more, pending: false });
    } catch (error) {
      if (!mine.signal.aborted) setState({ ...base, pending: false, failure: reasonOf(error) });
    }
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: sends each query only once
  useEffect(() => {
    asking.current?.abort();
    if (username === '') return setState(null);
    let current = true;
    const timer = setTimeout(() => {
      findBot(username).then(
        (bot) => {
          if (!current) return;
          if (bot) void ask(bot, '', []);
          else setState(null);
        },
        () => current && setState(null),
      );
    }, pause_ms);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [chat, username, query]);
  useEffect(() => () => asking.current?.abort(), []);

  const isCurrent = state?.query === query && state.bot.username.toLowerCase() === username.toLowerCase();
  /** Loads further results, if the bot has any. */
  const more = () => {
    if (state?.next && !state.pending) void ask(state.bot, state.next, state.results);
  };
  return { state: username === '' ? null : state, isCurrent, more };
}

export interface InlineProps {
  chat: number;
  /** The typed text, or null if it cannot be an inline query. */
  text: string | null;
  replyTo: Message | null;
  /** Called after a result was sent. */
  sent: () => void;
}

/** Returns the state of the results panel. */
export function useInline({ chat, text, replyTo, sent }: InlineProps) {
  const { state, isCurrent, more } = useAnswers(chat, text);
  const [at, setAt] = useState(0);
  const [closed, setClosed] = useState<string | null>(null);
  const busy = useRef(false);
  const isOpen = state !== null && text !== closed;
  const id = useId();
  useEffect(() => setClosed((former) => (former === text ? former : null)), [text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: selects the first result of each new query
  useEffect(() => setAt(0), [state?.query, state?.bot.id]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads more when the last result is selected
  useEffect(() => {
    if (state && state.results.length > 0 && at >= state.results.length - 1) more();
  }, [at]);

  async function choose(index: number): Promise<void> {
    const chosen = state?.results[index];
    if (!chosen || busy.current) return;
    busy.current = true;
    try {
      const body = {
        inline_query_id: chosen.answer,
        result_id: chosen.result.id,
        ...(replyTo ? { reply_to_message_id: replyTo.message_id } : {}),
      };
      const path = `/api/chats/${chat}/inline_result`;
      const message = await call<Message>('POST', path, body, { key: randomName() });
      const history = historyOf(chat);
      if (!history.find(message.message_id)) history.put(message, true);
      sent();
    } catch (error) {
      say(reasonOf(error));
    } finally {
      busy.current = false;
    }
  }

  /** Presses the button above the results, which starts the bot with a parameter. */
  async function pressButton(): Promise<void> {
    if (!state?.button) return;
    try {
      const payload = state.button.start_parameter;
      await call('POST', `/api/bots/${state.bot.username}/start`, { payload });
      await chats.refresh(state.bot.id);
      go(`chat/${state.bot.id}`);
    } catch (error) {
      say(reasonOf(error));
    }
  }

  const close = () => setClosed(text);
  /** Handles a key press in the text field. Returns whether the list of results used the key. */
  const onKey = ({ key, shiftKey }: KeyboardEvent): boolean => {
    if (!isOpen || !state) return false;
    const count = state.results.length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (key === 'Escape') close();
    else if (step && count > 0) setAt(Math.min(count - 1, Math.max(0, at + step)));
    else if (key === 'Enter' && !shiftKey && (state.pending || !isCurrent)) return true;
    else if (key === 'Enter' && !shiftKey && count > 0) void choose(at);
    else return false;
    return true;
  };
  return { id, state, isOpen, at, onKey, close, choose, pressButton, more };
}

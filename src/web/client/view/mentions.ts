/** Suggests members of a group while the person types `@` and the beginning of a name. */
import { type KeyboardEvent, useEffect, useId, useState } from 'react';
import { historyOf } from '../model/chats.js';
import { typedMention } from '../model/typed_mention.js';
import { me } from '../session.js';
import type { User } from '../types.js';
import { changeField, type FieldRef } from './formatting.js';

interface MentionsProps {
  chat: number;
  field: FieldRef;
  /** The text in the composer. Null if the chat is not a group. */
  text: string | null;
  /** The position of the caret, or null if text is selected. */
  caret: number | null;
}

type Model = typeof import('../model/mentions.js');

interface Loaded extends Pick<Model, 'mentionable' | 'mentionChange'> {
  readonly members: readonly User[];
}

/**
 * Loads the code for mentions and the members of the group when the person begins to type a mention. Returns null until
 * both are loaded.
 */
function useMembers(chat: number, isWanted: boolean): Loaded | null {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  useEffect(() => {
    if (!isWanted) return;
    let isHere = true;
    const load = async () => {
      const [{ membersOf }, { mentionable, mentionChange }] = await Promise.all([
        import('../model/members.js'),
        import('../model/mentions.js'),
      ]);
      // If the members cannot be loaded, the person can still mention people who wrote recently.
      const members = await membersOf(chat).catch(() => []);
      if (isHere) setLoaded({ members, mentionable, mentionChange });
    };
    // If the code for mentions cannot be loaded, the person can still type the whole name.
    load().catch(() => {});
    return () => {
      isHere = false;
    };
  }, [chat, isWanted]);
  return loaded;
}

/** Returns the state of the list of members. Escape closes the list until the typed name changes. */
export function useMentions({ chat, field, text, caret }: MentionsProps) {
  const id = useId();
  const [at, setAt] = useState(0);
  const [closed, setClosed] = useState<string | undefined>();
  const typed = text === null || caret === null ? undefined : typedMention(text, caret);
  const loaded = useMembers(chat, typed !== undefined);
  useEffect(() => {
    setAt(0);
    setClosed((former) => (former === typed ? former : undefined));
  }, [typed]);
  const list =
    typed === undefined || typed === closed || loaded === null
      ? []
      : loaded.mentionable(typed, loaded.members, historyOf(chat).messages, me.value?.id ?? 0);
  const isOpen = list.length > 0;
  const close = () => setClosed(typed);

  function choose(user: User | undefined) {
    const area = field.current;
    if (area && loaded && user && typed !== undefined && caret !== null)
      changeField(area, loaded.mentionChange(user, typed, caret));
  }

  /** Handles a key press in the text field. Returns whether the list of members used the key. */
  const onKey = ({ key, shiftKey, ctrlKey, altKey, metaKey }: KeyboardEvent): boolean => {
    if (!isOpen || shiftKey || ctrlKey || altKey || metaKey) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step) setAt((at + step + list.length) % list.length);
    else if (key === 'Escape') close();
    else if (key === 'Tab' || key === 'Enter') choose(list[at] ?? list[0]);
    else return false;
    return true;
  };
  return { id, list, at, isOpen, onKey, choose, close };
}

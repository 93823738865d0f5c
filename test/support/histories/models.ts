/** Defines the sequential models of the objects whose histories are checked. */
import type { Operation } from './history.js';
import type { Model } from './linearizable.js';

type Op<I, O> = Operation<I, O>;

/** A register with compare-and-set. The answer to a refused change is false. */
export type RegisterInput =
  | { readonly what: 'write'; readonly value: string }
  | { readonly what: 'read' }
  | { readonly what: 'swap'; readonly from: string; readonly to: string };

export const register: Model<RegisterInput, string | boolean, string> = {
  start: '',
  name: (state) => state,
  step(state, { input, output }) {
    switch (input.what) {
      case 'write':
        return input.value;
      case 'read':
        return output === null || output === state ? state : null;
      case 'swap': {
        const swaps = input.from === state;
        if (output !== null && output !== swaps) return null;
        return swaps ? input.to : state;
      }
    }
  },
};

/** The id of the pinned message in a chat, or 0 if there is none. */
export type PinCall =
  | { readonly what: 'pin'; readonly message: number }
  /** Unpins this message. Without `message`, unpins the message that is pinned. */
  | { readonly what: 'unpin'; readonly message?: number }
  | { readonly what: 'unpinAll' }
  | { readonly what: 'read' };
/** Deleting a message also unpins the message. */
export type PinInput = PinCall | { readonly what: 'drop'; readonly message: number };

/** A read returns the id of the pinned message. */
export type PinOutput = 'done' | 'not_found' | number;

export const pins: Model<PinInput, PinOutput, number> = {
  start: 0,
  name: String,
  step(state, { input, output }) {
    switch (input.what) {
      case 'pin':
        return output === 'not_found' ? null : input.message;
      case 'unpinAll':
        return output === 'not_found' ? null : 0;
      case 'drop':
        return state === input.message ? 0 : state;
      case 'unpin': {
        const found = state !== 0 && (input.message ?? state) === state;
        if (output !== null && (output === 'done') !== found) return null;
        return found ? 0 : state;
      }
      case 'read':
        return output === null || output === state ? state : null;
    }
  },
};

/**
 * The reactions to a post. Each answer shows the whole post as the caller sees it. The answer to a change may show the
 * post at any moment between the change and the answer. If a change is repeated after a lost reply, its answer also
 * shows changes that other people made in the meantime. A change with an answer is therefore modelled in two steps: the
 * change itself, and `shown`.
 */
export type ReactionInput =
  | { readonly what: 'set'; readonly person: string; readonly emoji: string }
  | { readonly what: 'remove'; readonly person: string; readonly emoji: string }
  | { readonly what: 'clear'; readonly person: string }
  | { readonly what: 'shown'; readonly person: string; readonly call: number }
  | { readonly what: 'read'; readonly person: string };

export interface ReactionOutput {
  /** The emoji of the caller's reactions, or null if these reactions are not checked. */
  readonly own: readonly string[] | null;
  readonly counts: Readonly<Record<string, number>>;
}

interface ReactionState {
  /** The reactions as sorted pairs of an emoji and a person. */
  readonly pairs: readonly string[];
  /** The calls whose change has taken effect and that are not answered yet, in ascending order. */
  readonly open: readonly number[];
}

/** Changes are identified by the time of their call. */
export const reactions: Model<ReactionInput, ReactionOutput, ReactionState> = {
  start: { pairs: [], open: [] },
  name: ({ pairs, open }) => `${pairs.join(',')}${open.length > 0 ? `; open ${open}` : ''}`,
  step(state, { input, output, invokedAt }) {
    const { pairs, open } = state;
    switch (input.what) {
      case 'read':
        return output === null || showsReactions(pairs, input.person, output) ? state : null;
      case 'shown': {
        const fits =
          output !== null && open.includes(input.call) && showsReactions(pairs, input.person, output);
        return fits ? { pairs, open: open.filter((call) => call !== input.call) } : null;
      }
      default: {
        const waiting = output === null ? open : [...open, invokedAt].sort((a, b) => a - b);
        return { pairs: reacted(pairs, input), open: waiting };
      }
    }
  },
};

/** Returns the steps of a call. */
export function reactionSteps(
  operation: Op<ReactionInput, ReactionOutput>,
): Op<ReactionInput, ReactionOutput>[] {
  const { input, output, invokedAt: call } = operation;
  if (input.what === 'read' || output === null) return [operation];
  return [operation, { ...operation, input: { what: 'shown', person: input.person, call } }];
}

/** Splits at the first space, because emoji contain no space but names of people may. */
function splitPair(pair: string): readonly [string, string] {
  const space = pair.indexOf(' ');
  return [pair.slice(0, space), pair.slice(space + 1)];
}

function reacted(
  state: readonly string[],
  input: Exclude<ReactionInput, { what: 'read' | 'shown' }>,
): readonly string[] {
  if (input.what === 'clear') return state.filter((pair) => splitPair(pair)[1] !== input.person);
  const changed = `${input.emoji} ${input.person}`;
  const others = state.filter((pair) => pair !== changed);
  return input.what === 'set' ? [...others, changed].sort() : others;
}

function showsReactions(state: readonly string[], person: string, { own, counts }: ReactionOutput): boolean {
  const pairs = state.map((pair) => splitPair(pair));
  const mine = pairs.filter(([, who]) => who === person).map(([emoji]) => emoji);
  const emojis = [...new Set(pairs.map(([emoji]) => emoji))];
  return (
    (own === null || [...own].sort().join() === mine.sort().join()) &&
    Object.keys(counts).length === emojis.length &&
    emojis.every((emoji) => counts[emoji] === pairs.filter(([each]) => each === emoji).length)
  );
}

/** The owner of a bot. Only the owner may transfer it. */
export type OwnerInput =
  | { readonly what: 'transfer'; readonly from: string; readonly to: string }
  /** Asks whether a person owns the bot. */
  | { readonly what: 'owns'; readonly person: string };

/** The answer is true, or false if the person is not the owner. */
export const ownership = (owner: string): Model<OwnerInput, boolean, string> => ({
  start: owner,
  name: (state) => state,
  step(state, { input, output }) {
    const allowed = state === (input.what === 'owns' ? input.person : input.from);
    if (output !== null && output !== allowed) return null;
    return allowed && input.what === 'transfer' ? input.to : state;
  },
});

/**
 * The token of a bot. A replacement has two steps, both between the call and the answer. After the first step, each of
 * the two tokens may work or not. After the second step, only the new token works.
 */
export type TokenInput =
  | { readonly what: 'begin' | 'end'; readonly token: string }
  | { readonly what: 'use'; readonly token: string };

/** The answer to a use of a token says whether the token was accepted. */
export type TokenOutput = boolean;

interface TokenState {
  /** All tokens so far, in the order of their first steps. */
  readonly issued: readonly string[];
  /** The index of the first token that may still work. */
  readonly from: number;
  /** Whether the last token is certain to work. */
  readonly settled: boolean;
}

export const tokens = (first: string): Model<TokenInput, TokenOutput, TokenState> => ({
  start: { issued: [first], from: 0, settled: true },
  name: ({ issued, from, settled }) => `${issued.slice(from).join(' ')}${settled ? '' : ' or not'}`,
  step(state, { input, output }) {
    const { issued, from, settled } = state;
    const place = issued.indexOf(input.token);
    const isLast = place === issued.length - 1;
    switch (input.what) {
      case 'begin':
        return { issued: [...issued, input.token], from, settled: false };
      case 'end':
        return place < 0 ? null : { issued, from: Math.max(from, place), settled: settled || isLast };
      case 'use':
        if (output === true) return place >= from ? state : null;
        return isLast && settled && output === false ? null : state;
    }
  },
});

/** Returns the two steps of a replacement. The name of the new token is `token`, even if the outcome is unknown. */
export function replacementSteps(
  operation: Op<unknown, TokenOutput>,
  token: string,
): Op<TokenInput, TokenOutput>[] {
  return (['begin', 'end'] as const).map((what) => ({ ...operation, input: { what, token } }));
}

/** The text of a message. At most one edit is stored in each `interval` ms. */
export type EditInput = { readonly what: 'edit'; readonly text: string } | { readonly what: 'read' };

/** A read returns the text of the message. */
export type EditOutput = { readonly text: string } | 'done' | 'too_often';

interface EditState {
  readonly text: string;
  /** The earliest possible time at which the last edit was stored. */
  readonly editedAt: number;
  /** The earliest possible time at which the last operation takes effect. */
  readonly now: number;
}

export const edits = (text: string, intervalMs: number): Model<EditInput, EditOutput, EditState> => ({
  start: { text, editedAt: Number.NEGATIVE_INFINITY, now: Number.NEGATIVE_INFINITY },
  name: (state) => `${state.text} ${state.editedAt} ${state.now}`,
  step(state, { input, output, invokedAt, answeredAt }) {
    const now = Math.max(state.now, invokedAt);
    if (input.what === 'read') {
      const shown = output === null || (typeof output === 'object' && output.text === state.text);
      return shown ? { ...state, now } : null;
    }
    // Does not allow the refusal `too_often` for a message that was never edited, because such a message can be edited
    // immediately.
    if (output === 'too_often') return Number.isFinite(state.editedAt) ? { ...state, now } : null;
    const editedAt = Math.max(now, state.editedAt + intervalMs);
    return editedAt <= answeredAt ? { text: input.text, editedAt, now: editedAt } : null;
  },
});

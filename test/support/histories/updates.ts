/**
 * Checks the updates that a bot received. There must be no gap, no repetition that was not announced, and no wrong
 * order within a chat.
 */

/** An update that arrived. Lists of arrivals are in the order of arrival. */
export interface Arrival {
  readonly id: number;
  readonly chat: string;
  /** The id of the message in the chat. */
  readonly message: number;
  readonly text: string;
  /**
   * Whether the update had arrived before without a confirmation by the receiver. The receiver must expect such an
   * update again.
   */
  readonly announced: boolean;
}

/** A successful call of getUpdates. Lists of polls are in the order of the calls. */
export interface Poll {
  /** The highest offset that this call or an earlier call sent. The earlier call may not have been answered. */
  readonly offset: number;
  readonly updates: readonly Omit<Arrival, 'announced'>[];
}

/**
 * Returns the updates that the polls received, in order. A poll confirms the updates with ids below its offset. All
 * other updates may be returned again.
 */
export const arrivalsOf = (polls: readonly Poll[]): Arrival[] =>
  polls.flatMap(({ offset, updates }) => updates.map((each) => ({ ...each, announced: each.id >= offset })));

export interface UpdateRules {
  /** Polls return updates in the order of their ids. Webhooks deliver updates in order only within each chat. */
  readonly ordered: 'bot' | 'chat';
  /** How many times the ids may skip `skipLeast` ids or more. One such skip is allowed for each restart of Redis. */
  readonly skips: number;
  readonly skipLeast: number;
  /** The texts of acknowledged messages. Each of them must arrive. */
  readonly acknowledged: readonly string[];
  /** The texts of all messages that were attempted. No other text may arrive. */
  readonly attempted: ReadonlySet<string>;
}

const findings_max = 20;

/** Returns the violations in words, at most 20. */
export function checkUpdates(arrivals: readonly Arrival[], rules: UpdateRules): string[] {
  const found: string[] = [];
  const first = new Map<number, Arrival>();
  const last = new Map<string, Arrival>();
  const texts = new Set<string>();
  for (const arrival of arrivals) {
    const { id, chat, message, text, announced } = arrival;
    const before = first.get(id);
    if (before) {
      if (!announced) found.push(`repeated: update ${id} after it was confirmed`);
      if (before.text !== text || before.message !== message || before.chat !== chat)
        found.push(`reused: update ${id} for "${before.text}" and "${text}"`);
      continue;
    }
    first.set(id, arrival);
    if (texts.has(text)) found.push(`doubled: "${text}" again as update ${id}`);
    texts.add(text);
    if (!rules.attempted.has(text)) found.push(`invented: update ${id} "${text}"`);
    const lane = rules.ordered === 'bot' ? '' : chat;
    if (id < (last.get(lane)?.id ?? 0)) found.push(`reordered: update ${id} after ${last.get(lane)?.id}`);
    if (message <= (last.get(`chat ${chat}`)?.message ?? 0))
      found.push(`reordered: message ${message} of ${chat} in update ${id}`);
    last.set(lane, arrival);
    last.set(`chat ${chat}`, arrival);
  }
  for (const text of rules.acknowledged) if (!texts.has(text)) found.push(`lost: "${text}"`);
  found.push(...gaps([...first.keys()], rules));
  return found.slice(0, findings_max);
}

function gaps(ids: readonly number[], { skips, skipLeast }: UpdateRules): string[] {
  const found: string[] = [];
  const sorted = [...ids].sort((a, b) => a - b);
  let left = skips;
  for (const [i, id] of sorted.entries()) {
    const step = id - (sorted[i - 1] ?? id - 1);
    if (step === 1) continue;
    if (step >= skipLeast && left > 0) left--;
    else found.push(`gap: no update between ${sorted[i - 1]} and ${id}`);
  }
  return found;
}

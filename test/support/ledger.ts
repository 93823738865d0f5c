/**
 * Compares the answers that callers got and the updates that bots received with the data that the service stored. Every
 * attempt of a call has a unique text, so that an answer, a message and an update can always be matched. An attempt
 * without an answer must have been applied exactly once or not at all. An attempt that was acknowledged must have been
 * applied exactly once.
 */

export interface Seen {
  readonly messageId: number;
  readonly text: string;
}

interface Acknowledged extends Seen {
  readonly chat: string;
  readonly sender: string;
}

interface Received extends Seen {
  readonly chat: string;
  readonly updateId: number;
}

/**
 * The number of faults of each kind, with the first examples. The fields `acknowledged` and `unanswered` say how many
 * calls were compared.
 */
export interface Verdict {
  readonly acknowledged: number;
  readonly unanswered: number;
  readonly appliedUnanswered: number;
  readonly lost: number;
  readonly doubled: number;
  readonly reordered: number;
  readonly invented: number;
  /**
   * The updates that were pushed again although the receiver had got them. Receivers must expect such updates
   * (interface §6).
   */
  readonly redelivered: number;
  readonly reused: number;
  readonly examples: readonly string[];
  readonly texts: readonly string[];
}

export const nothingWrong = { lost: 0, doubled: 0, reordered: 0, invented: 0, reused: 0, examples: [] };

class Findings {
  lost = 0;
  doubled = 0;
  reordered = 0;
  invented = 0;
  reused = 0;
  redelivered = 0;
  readonly examples: string[] = [];
  readonly texts: string[] = [];

  add(what: 'lost' | 'doubled' | 'reordered' | 'invented' | 'reused', text: string, example: string): void {
    this[what]++;
    this.texts.push(text);
    if (this.examples.length < 10) this.examples.push(`${what}: ${example}`);
  }
}

export class Ledger {
  /** The acknowledged calls. Calls by one sender are in the order of their answers. */
  readonly acknowledged: Acknowledged[] = [];
  readonly #tried = new Map<string, string>();
  readonly #answered = new Set<string>();
  readonly #received = new Map<number, Received[]>();
  #tries = 0;

  attempt(chat: string, sender: string): string {
    const text = `${sender} try ${++this.#tries}`;
    this.#tried.set(text, chat);
    return text;
  }

  acknowledge(chat: string, sender: string, text: string, messageId: number): void {
    this.#answered.add(text);
    this.acknowledged.push({ chat, sender, text, messageId });
  }

  receive(bot: number, update: Received): void {
    const list = this.#received.get(bot) ?? [];
    this.#received.set(bot, list);
    list.push(update);
  }

  textsOf(bot: number): Set<string> {
    return new Set((this.#received.get(bot) ?? []).map(({ text }) => text));
  }

  /**
   * Compares the ledger with the histories of all chats, and with the updates that bots received. `history` may list
   * the chats in any order. A bot must receive each message of the history for which `hears` returns true. If updates
   * are `pushed`, the updates of different chats arrive in any order. An update can arrive again at any time, and only
   * its first arrival counts.
   */
  check(
    history: ReadonlyMap<string, readonly Seen[]>,
    bots: readonly number[],
    hears: (bot: number, chat: string, text: string) => boolean,
    pushed = false,
  ): Verdict {
    const found = new Findings();
    const kept = this.#checkHistory(history, found);
    this.#checkSenders(found);
    for (const bot of bots) this.#checkBot(bot, history, hears, pushed, found);
    const unanswered = [...this.#tried.keys()].filter((text) => !this.#answered.has(text));
    const { lost, doubled, reordered, invented, reused, redelivered, examples, texts } = found;
    return {
      acknowledged: this.acknowledged.length,
      unanswered: unanswered.length,
      appliedUnanswered: unanswered.filter((text) => kept.has(text)).length,
      lost,
      doubled,
      reordered,
      invented,
      redelivered,
      reused,
      examples,
      texts,
    };
  }

  #checkHistory(history: ReadonlyMap<string, readonly Seen[]>, found: Findings): Map<string, Seen> {
    const kept = new Map<string, Seen>();
    for (const [chat, messages] of history) {
      const ids = new Set<number>();
      for (const message of messages) {
        if (ids.has(message.messageId))
          found.add('reused', message.text, `message ${message.messageId} of ${chat}`);
        ids.add(message.messageId);
        if (kept.has(message.text))
          found.add('doubled', message.text, `message "${message.text}" in ${chat}`);
        kept.set(message.text, message);
        if (this.#tried.get(message.text) !== chat)
          found.add('invented', message.text, `message "${message.text}" in ${chat}`);
      }
    }
    for (const { chat, text, messageId } of this.acknowledged) {
      const message = kept.get(text);
      if (message?.messageId !== messageId)
        found.add(
          'lost',
          text,
          `message "${text}", told to be ${messageId} of ${chat}, is ${message?.messageId}`,
        );
    }
    return kept;
  }

  /** If a sender waits for each answer before its next call, the ids of its messages grow. No id is assigned twice. */
  #checkSenders(found: Findings): void {
    const lastOf = new Map<string, number>();
    const given = new Map<string, string>();
    for (const { chat, sender, text, messageId } of this.acknowledged) {
      const lane = `${sender} in ${chat}`;
      if (messageId <= (lastOf.get(lane) ?? 0)) found.add('reordered', text, `message "${text}" in ${chat}`);
      lastOf.set(lane, messageId);
      const id = `${messageId} of ${chat}`;
      if (given.has(id)) found.add('reused', text, `message ${id} for "${given.get(id)}" and "${text}"`);
      given.set(id, text);
    }
  }

  #checkBot(
    bot: number,
    history: ReadonlyMap<string, readonly Seen[]>,
    hears: (bot: number, chat: string, text: string) => boolean,
    pushed: boolean,
    found: Findings,
  ): void {
    const expected = new Map<string, Seen>();
    for (const [chat, messages] of history)
      for (const message of messages) if (hears(bot, chat, message.text)) expected.set(message.text, message);
    const heard = new Set<string>();
    const updates = new Map<number, string>();
    const lastOf = new Map<string, number>();
    /** The id of the last update: one for each chat if updates are pushed, and one for the whole bot if it polls. */
    const lastUpdates = new Map<string, number>();
    for (const { chat, updateId, messageId, text } of this.#received.get(bot) ?? []) {
      const what = `update ${updateId} "${text}" of bot ${bot}`;
      if (pushed && updates.get(updateId) === text) {
        found.redelivered++;
        continue;
      }
      if (updates.has(updateId)) found.add(updates.get(updateId) === text ? 'doubled' : 'reused', text, what);
      updates.set(updateId, text);
      if (heard.has(text)) found.add('doubled', text, what);
      heard.add(text);
      if (expected.get(text)?.messageId !== messageId) found.add('invented', text, what);
      const lane = pushed ? chat : '';
      if (updateId <= (lastUpdates.get(lane) ?? 0) || messageId <= (lastOf.get(chat) ?? 0))
        found.add('reordered', text, what);
      lastUpdates.set(lane, updateId);
      lastOf.set(chat, messageId);
    }
    for (const text of expected.keys())
      if (!heard.has(text)) found.add('lost', text, `update "${text}" of bot ${bot}`);
  }
}

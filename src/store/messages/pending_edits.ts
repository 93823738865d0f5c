/**
 * Applies pending edits when they are due (decision 0066). The node that accepted an edit has a timer for it. If this
 * node dies, the next sweep of any node applies the edit. Several nodes may apply edits at the same time, because one
 * script applies a pending edit and removes it.
 */
import { ApiError } from '../../errors.js';
import type { Timer } from '../../time.js';
import type { Auth } from '../access/auth.js';
import type { Profile } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { mayAct } from '../core/control.js';
import { parseChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Forwarder } from '../updates/forwarder.js';
import { runEdit } from './edit_script.js';
import type { ReadBack } from './read_back.js';

/** The minimum time between two runs of a timer, in ms. Edits that become due in between are applied together. */
const stepMs = 20;
const valuesPerEdit = 5;

interface DueEdit {
  /** The chat and the message, as `chat:message`. */
  readonly place: string;
  readonly token: string;
  readonly editor: number;
  readonly isInline: boolean;
  readonly profile: Profile;
}

function dueEdits(values: readonly string[]): DueEdit[] {
  const edits: DueEdit[] = [];
  for (let i = 0; i < values.length; i += valuesPerEdit) {
    const [place, token, editor, isInline, profile] = values.slice(i, i + valuesPerEdit) as [
      ...[string, string, string, string, string],
    ];
    edits.push({
      ...{ place, token, editor: Number(editor), isInline: isInline === '1' },
      profile: JSON.parse(profile) as Profile,
    });
  }
  return edits;
}

export class PendingEdits {
  readonly #context: StoreContext;
  readonly #auth: Pick<Auth, 'botById'>;
  readonly #readBack: ReadBack;
  readonly #forwarder: Forwarder;
  readonly #onError: (error: unknown) => void;
  /** The timer of each partition, and the time at which it runs next by the monotonic clock. */
  readonly #timers = new Map<number, { readonly at: number; readonly timer: Timer }>();
  #stopped = false;

  constructor(
    context: StoreContext,
    auth: Pick<Auth, 'botById'>,
    readBack: ReadBack,
    forwarder: Forwarder,
    onError: (error: unknown) => void,
  ) {
    this.#context = context;
    this.#auth = auth;
    this.#readBack = readBack;
    this.#forwarder = forwarder;
    this.#onError = onError;
  }

  /** Makes the timer apply this partition's due edits after at most `ms`. */
  follow(partition: number, ms: number): void {
    const { time } = this.#context;
    const wait = Math.max(ms, stepMs);
    const at = time.monotonic() + wait;
    const present = this.#timers.get(partition);
    if (this.#stopped || (present && present.at <= at)) return;
    time.cancel(present?.timer);
    const run = () => {
      this.#timers.delete(partition);
      this.apply(partition).catch(this.#onError);
    };
    this.#timers.set(partition, { at, timer: time.after(wait, run).unref() });
  }

  /** Stops the timers. The sweeps of other nodes apply the pending edits. */
  stop(): void {
    this.#stopped = true;
    for (const { timer } of this.#timers.values()) this.#context.time.cancel(timer);
    this.#timers.clear();
  }

  /**
   * Applies all of this partition's edits that are due. If an edit cannot be applied now, it is due again a second
   * later.
   */
  async apply(partition: number): Promise<void> {
    const { scripts, keys } = this.#context;
    const at = {
      ...{ meta: keys.meta(partition), pending: keys.pendingEdits(partition) },
      edits_due: keys.editsDue(partition),
    };
    for (let gone: string[] = []; ; ) {
      const args = { limit: limits.pending_edits_batch_max, gone };
      const result = await scripts.call('messages/due_edits', partition, at, args);
      const due = dueEdits(result.edits);
      gone = (await Promise.all(due.map((edit) => this.#applyOne(edit)))).flat();
      if (gone.length > 0 || due.length === limits.pending_edits_batch_max) continue;
      if (result.wait_ms !== null) this.follow(partition, result.wait_ms);
      return;
    }
  }

  /**
   * Applies a pending edit that is due. If the edit can never be applied, returns the edit's `chat:message` and token.
   */
  async #applyOne({ place, token, editor, profile, isInline }: DueEdit): Promise<readonly string[]> {
    const [chat = '', messageId] = place.split(':');
    const call = {
      ...{
        request: this.#context.uniqueText(),
        chat: parseChat(chat),
        messageId: Number(messageId),
        isInline,
      },
      ...{ editor: { id: editor, isBot: true, profile }, change: { token }, coalesceFor: null },
    };
    try {
      // Checks the bot again, because it may have been suspended, deleted or blocked since the edit was accepted.
      if (!mayAct(await this.#auth.botById(editor))) return [place, token];
      const result = await runEdit(this.#context, this.#readBack, call);
      if (result.status === 'ok') this.#forwarder.follow(call.chat.id, result);
      const isLater =
        result.status === 'ok' || result.status === 'outbox_full' || result.status === 'too_often';
      return isLater ? [] : [place, token];
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error.code === 429 || error.code >= 500 ? [] : [place, token];
    }
  }
}

/**
 * Stores the texts that people have written but not sent, so that all windows of a person show them (decision 0092).
 * Each person has one record of limited size, only in Redis. Each change goes to the person's event streams.
 */
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';

/** A person's unsent text in a chat. The text is empty after the person has sent or removed the draft. */
export interface PersonDraft {
  readonly chat_id: number;
  readonly text: string;
  /** Increases with each change of the draft. */
  readonly version: number;
}

/** The prefix of a hint about a person's draft. The chat id, the version and the text follow. */
const hintPrefix = 'person_draft ';

/** Reads a hint. Returns null if the hint is not about a person's draft. */
export function readPersonDraftHint(hint: string): PersonDraft | null {
  if (!hint.startsWith(hintPrefix)) return null;
  const [chat, version] = hint.slice(hintPrefix.length).split(' ', 2) as [string, string];
  const text = hint.slice(hintPrefix.length + chat.length + version.length + 2);
  return { chat_id: Number(chat), text, version: Number(version) };
}

const keysOf = ({ keys }: Pick<StoreContext, 'keys'>, user: number) => ({
  drafts: keys.personDrafts(user),
  channel: keys.userChannel(user),
});

/** Stores a person's unsent text in a chat. An empty text removes the draft. Returns the draft's version. */
export async function putPersonDraft(
  context: StoreContext,
  user: number,
  chat: ChatRef,
  text: string,
): Promise<number> {
  const { scripts, keys } = context;
  const partition = keys.partitions.of(user);
  const args = { chat: String(chat.id), text };
  return (await scripts.call('chats/put_person_draft', partition, keysOf(context, user), args)).version;
}

/** Removes all drafts of a person. */
export async function forgetPersonDrafts({ scripts, keys }: StoreContext, user: number): Promise<void> {
  const entries = [keys.personDrafts(user)];
  await scripts.call('control/forget', keys.partitions.of(user), { entries }, {});
}

export function createPersonDrafts(context: StoreContext) {
  const { scripts, keys } = context;
  return {
    put: (user: number, chat: ChatRef, text: string) => putPersonDraft(context, user, chat, text),
    /** Returns all drafts of a person, including removed ones, in the order of their chat ids. */
    async list(user: number): Promise<PersonDraft[]> {
      const at = { drafts: keys.personDrafts(user) };
      const { fields } = await scripts.call('chats/read_person_drafts', keys.partitions.of(user), at, {});
      const all = (fields as readonly Buffer[]).map(String);
      const drafts: PersonDraft[] = [];
      for (let i = 0; i + 1 < all.length; i += 2) {
        const [chat, stored] = [all[i] as string, all[i + 1] as string];
        const draft = chat === 'b' ? null : readPersonDraftHint(`${hintPrefix}${chat} ${stored}`);
        if (draft) drafts.push(draft);
      }
      return drafts.sort((a, b) => a.chat_id - b.chat_id);
    },
  };
}

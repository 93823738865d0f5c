/** Calls the scripts that edit messages. */
import { type Content, type InlineKeyboard, pack, packContent, packMarkup } from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys, withMessage } from '../core/script_keys.js';
import type { Sender } from './batches.js';
import type { ReadBack } from './read_back.js';

/** The new content of a message. `caption` changes only the caption. `media` changes the media and the caption. */
export type Edit =
  | {
      readonly what: 'text' | 'caption' | 'media';
      readonly content: Content;
      readonly markup: InlineKeyboard | null;
    }
  /**
   * The new position of a live location. Null stops the live location. If the call sets a new period, `content.live`
   * contains this period.
   */
  | { readonly what: 'location'; readonly content: Content | null; readonly markup: InlineKeyboard | null }
  | { readonly what: 'markup'; readonly markup: InlineKeyboard | null };

export interface PendingToken {
  readonly token: string;
}

export interface EditCall {
  readonly request: string;
  readonly chat: ChatRef;
  readonly editor: Sender;
  readonly messageId: number;
  /** True if the message is an inline message, which its bot edits. */
  readonly isInline: boolean;
  /** The new edit, or the token of a pending edit that is now due. */
  readonly change: Edit | PendingToken;
  /**
   * What happens if the previous edit was less than a second ago. If this is the id of the bot's owner, the edit may
   * become pending. If it is null, the edit is refused.
   */
  readonly coalesceFor: number | null;
}

const nothing = Buffer.alloc(0);

/**
 * Returns the elements of the script's argument `edit` that say whether the edit is a pending edit that is due now, or
 * a new edit that may become pending.
 */
function modeOf({ change, coalesceFor, editor }: EditCall): readonly string[] {
  if ('token' in change) return ['due', change.token];
  return coalesceFor === null ? [] : ['coalesce', JSON.stringify(editor.profile), String(coalesceFor)];
}

/**
 * Runs the script of an edit. Loads records that are missing in Redis and runs the script again. Throws the errors of
 * `ReadBack.complete`.
 */
export function runEdit({ scripts, keys }: StoreContext, readBack: ReadBack, call: EditCall) {
  const { request, chat, editor, messageId, isInline, change } = call;
  const partition = keys.partitions.of(chat.id);
  const direct = isDirect(chat);
  const isDue = 'token' in change;
  const what = isDue ? 'text' : change.what;
  const content = isDue || change.what === 'markup' ? null : change.content;
  const args = {
    edit: pack([chatText(chat), String(messageId), String(editor.id), what, isInline, ...modeOf(call)]),
    content: content === null ? nothing : packContent(content),
    markup: isDue ? nothing : packMarkup(change.markup),
    from: direct && editor.isBot ? nothing : pack(editor.profile),
  };
  const pending = { pending: keys.pendingEdits(partition), edits_due: keys.editsDue(partition) };
  const place = {
    chat,
    who: editor,
    message: { id: messageId, absent: 'message_to_edit_not_found' },
  } as const;
  return readBack.complete(place, (token) =>
    direct
      ? scripts.call(
          'messages/edit_direct',
          partition,
          Object.assign(withMessage(keys, directKeys(keys, chat, request), chat, messageId), pending),
          { token, ...args },
        )
      : scripts.call(
          'messages/edit_shared',
          partition,
          Object.assign(
            withMessage(keys, sharedKeys(keys, chat, request, editor.id), chat, messageId),
            pending,
          ),
          { token, ...args },
        ),
  );
}

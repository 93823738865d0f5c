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
   * The new position of a live location, or null to stop the location. If the call specifies a period, the object's
   * field `live` contains it.
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
  /** True if the editor is the bot of an inline message. */
  readonly isInline: boolean;
  /** The edit, or the token of a pending edit that is due. */
  readonly change: Edit | PendingToken;
  /**
   * For an edit that comes less than a second after the previous edit: the bot's owner if the edit may become pending,
   * or null if it is refused.
   */
  readonly coalesceFor: number | null;
}

const nothing = Buffer.alloc(0);

/**
 * Returns those elements of the argument `edit` that mark an edit as one that may become pending, or as pending and
 * due.
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

/**
 * The state of a person's conversation with the management bot. It determines what the person's next message means,
 * unless that is a command.
 */
import type { Language } from '../rules/identity_texts.js';

export type TextKind = 'name' | 'description' | 'short_description';

export type Talk =
  | { readonly at: 'nothing' }
  | { readonly at: 'new_name' }
  | { readonly at: 'new_username'; readonly name: string }
  /** `language` is '' for the default language. */
  | { readonly at: 'text'; readonly bot: number; readonly what: TextKind; readonly language: Language | '' }
  | { readonly at: 'writers' | 'placeholder'; readonly bot: number }
  | { readonly at: 'transfer'; readonly bot: number };

export const nothing: Talk = { at: 'nothing' };

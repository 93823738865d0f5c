/** Defines the commands of the management bot. */

import type { PageKey } from './buttons.js';
import type { ManageTexts, TextKey } from './texts.js';

/** The commands, in the order of the menu. The value is the key of the bot page that the command opens, or null. */
export const commands = {
  newbot: null,
  mybots: 'm',
  token: 'k',
  revoke: 'i',
  setname: 'n',
  setdescription: 'd',
  setabouttext: 's',
  setwriters: 'w',
  setinline: 'q',
  setinlinefeedback: 'q',
  transfer: 'g',
  deletebot: 'x',
  cancel: null,
  help: null,
} as const satisfies Record<string, PageKey | null>;

export type CommandName = keyof typeof commands;
export const commandNames = Object.keys(commands) as CommandName[];

/**
 * Returns the command at the start of a text, ignoring case. `/name@username` counts only with this bot's username.
 * Null for any other text.
 */
export function readCommand(text: string, username: string): string | null {
  const [, name = '', at] = /^\/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]+))?(?=\s|$)/.exec(text) ?? [];
  if (name === '' || (at !== undefined && at.toLowerCase() !== username.toLowerCase())) return null;
  return name.toLowerCase();
}

const described = (name: CommandName) => `command_${name}` as const satisfies TextKey;

export const menuOf = (t: ManageTexts) =>
  commandNames.map((command) => ({ command, description: t[described(command)] }));

export const commandLines = (t: ManageTexts): string =>
  commandNames.map((command) => `/${command} – ${t[described(command)]}`).join('\n');

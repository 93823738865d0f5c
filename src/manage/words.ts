/**
 * Builds the management bot's messages. If a message shows a bot's token, only a marked range that names the bot is
 * stored, and never the token.
 */

import { formatText } from '../rules/entities/format.js';
import { tokenEntity } from '../rules/token_entity.js';
import type { Content, Entity } from '../store/core/codec.js';
import type { ManageTexts, TextKey, Values } from './texts.js';

/** A text in which `{token}` stands for the current token of the bot `tokenOf`. */
export interface Said {
  readonly key: TextKey;
  readonly values?: Values | undefined;
  readonly tokenOf?: number | undefined;
}

export function contentOf(t: ManageTexts, { key, values = {}, tokenOf }: Said): Content {
  let text = '';
  let mark: Entity | undefined;
  for (const [, words = '', name] of t[key].matchAll(/([^{]*)(?:\{(\w+)\}|$)/g)) {
    text += words;
    if (name === undefined) continue;
    if (name === 'token' && tokenOf !== undefined) {
      mark = tokenEntity(text.length, t.token_hidden.length, tokenOf);
      text += t.token_hidden;
    } else {
      text += values[name] ?? '';
    }
  }
  const { entities } = formatText(text);
  if (mark === undefined) return entities.length === 0 ? { text } : { text, entities: entities as Entity[] };
  const { offset, length } = mark;
  const apart = entities.filter((one) => one.offset + one.length <= offset || one.offset >= offset + length);
  const all: Entity[] = [...(apart as Entity[]), mark];
  return { text, entities: all.sort((a, b) => a.offset - b.offset) };
}

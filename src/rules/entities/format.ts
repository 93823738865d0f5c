/** Converts a caller's text to its stored form: plain text and entities (behaviour §4). */
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../limits.js';
import { computedEntities } from './computed.js';
import {
  byteOffset,
  type Entity,
  type FormattedText,
  isCode,
  isQuote,
  isStyle,
  linkEntity,
  unparsable,
  withOwnAddresses,
} from './entity.js';
import { parseHtml } from './html.js';
import { parseMarkdown } from './markdown.js';
import { parseMarkdownV2 } from './markdown_v2.js';
import { compareEntities, endOf, normalizeEntities, trimFormatted } from './normalize.js';

/** An entity as the caller sent it. Its fields have the right types, but their values are not checked yet. */
export interface EntityInput {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly url?: string | undefined;
  readonly user?: { readonly id: number } | undefined;
  readonly language?: string | undefined;
  readonly custom_emoji_id?: string | undefined;
}

const parsers: Readonly<Record<string, (source: string) => FormattedText>> = {
  html: parseHtml,
  markdownv2: parseMarkdownV2,
  markdown: parseMarkdown,
};
const foundByTheService: ReadonlySet<string> = new Set([
  'mention',
  'hashtag',
  'cashtag',
  'bot_command',
  'url',
  'email',
  'phone_number',
  'bank_card_number',
]);
const nothing: readonly Entity[] = [];

/**
 * Parses and trims a text and adds computed entities. If a parse mode is given, `entities` is ignored. The name of the
 * mode is case-insensitive, and '' and `none` mean no parse mode. Returns at most `entities_max` entities. The caller's
 * entities take precedence over computed ones. Does not check the length, but a text too long for `messageText` gets no
 * computed entities. Errors: `parse_mode_unsupported`, `entities_unparsable`.
 */
export function formatText(
  source: string,
  parseMode?: string,
  entities?: readonly EntityInput[],
): FormattedText {
  const parsed = parseText(source, parseMode?.toLowerCase() ?? '', entities ?? []);
  const { text, entities: trimmed } = trimFormatted(parsed.text, parsed.entities);
  const sent = trimmed.length === 0 ? nothing : first(normalizeEntities(trimmed));
  // Does not search for entities in a text that is longer than twice the maximum length. A later check rejects such a
  // text.
  const computed = text.length > 2 * limits.text_length_max ? nothing : computedEntities(text);
  if (computed.length === 0) return { text, entities: sent };
  if (sent.length === 0) return { text, entities: first(computed) };
  const fixed = sent.filter(({ type }) => !isStyle(type));
  const added = computed.filter((entity) => fixed.every((other) => canJoin(entity, other)));
  const room = Math.max(0, limits.entities_max - sent.length);
  const all = first(normalizeEntities([...sent, ...added.slice(0, room)]));
  // Trims again, because a style that was split may leave an entity with only white space. Without the second trim,
  // formatting the result once more could change it.
  return trimFormatted(text, all);
}

function parseText(source: string, mode: string, entities: readonly EntityInput[]): FormattedText {
  if (mode === '' || mode === 'none') {
    const given = entities.length === 0 ? nothing : checkedEntities(source, entities);
    return { text: source, entities: withoutLongLanguages(given) };
  }
  const parse = Object.hasOwn(parsers, mode) ? parsers[mode] : undefined;
  if (!parse) fail('parse_mode_unsupported');
  const { text, entities: found } = parse(source);
  return { text, entities: withoutLongLanguages(withOwnAddresses(text, bounded(found))) };
}

/** Removes language names that are too long, because the limit on the text's length does not cover them. */
function withoutLongLanguages(entities: readonly Entity[]): readonly Entity[] {
  const long = ({ language = '' }: Entity) => language.length > limits.code_language_length_max;
  if (!entities.some(long)) return entities;
  return entities.map((entity) => {
    if (!long(entity)) return entity;
    const { language: _, ...rest } = entity;
    return rest;
  });
}

/**
 * Limits the number of entities before styles are merged, because a text that is too long may have very many. After the
 * merge, at most `entities_max` entities are kept.
 */
function bounded(entities: readonly Entity[]): readonly Entity[] {
  const max = 10 * limits.entities_max;
  return entities.length <= max ? entities : [...entities].sort(compareEntities).slice(0, max);
}

const first = (entities: readonly Entity[]): readonly Entity[] =>
  entities.length > limits.entities_max ? entities.slice(0, limits.entities_max) : entities;

function canJoin(computed: Entity, fixed: Entity): boolean {
  const apart = endOf(computed) <= fixed.offset || endOf(fixed) <= computed.offset;
  return apart || (isQuote(fixed.type) && computed.offset >= fixed.offset && endOf(computed) <= endOf(fixed));
}

function checkedEntities(text: string, given: readonly EntityInput[]): Entity[] {
  const checked: Entity[] = [];
  for (const entity of given) {
    checkRange(text, entity);
    if (checked.length === limits.entities_max || entity.length === 0) continue;
    const made = foundByTheService.has(entity.type) ? null : checkedEntity(entity);
    if (made) checked.push(made);
  }
  return checked;
}

function checkRange(text: string, { offset, length }: EntityInput): void {
  if (!Number.isSafeInteger(offset) || offset < 0) unparsable('Receive an entity with incorrect offset');
  if (!Number.isSafeInteger(length) || length < 0) unparsable('Receive an entity with incorrect length');
  const end = offset + length;
  if (end > text.length) {
    const size = text.length;
    unparsable(
      `Entity beginning at UTF-16 offset ${offset} ends after the end of the text at UTF-16 offset ${size}`,
    );
  }
  for (const [at, what] of [
    [offset, 'begins'],
    [end, 'ends'],
  ] as const) {
    if (splitsPair(text, at)) {
      unparsable(`Entity ${what} in a middle of a UTF-16 symbol at byte offset ${byteOffset(text, at - 1)}`);
    }
  }
}

function splitsPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
}

/** Copies only the fields that belong to the entity's type. Returns null for an unsupported link. */
function checkedEntity(given: EntityInput): Entity | null {
  const { type, offset, length } = given;
  if (isStyle(type) || isQuote(type) || isCode(type)) {
    const { language } = given;
    const entity = { type: type as Entity['type'], offset, length };
    return type === 'pre' && language ? { ...entity, language } : entity;
  }
  switch (type) {
    case 'text_link':
      if (!given.url) unparsable('Field "url" must be a non-empty string');
      return linkEntity(offset, length, given.url);
    case 'text_mention': {
      const id = given.user?.id ?? 0;
      if (!Number.isSafeInteger(id) || id < 1 || id >= limits.id_max) {
        unparsable('Field "user" must name a user by its identifier');
      }
      return { type, offset, length, user: { id } };
    }
    case 'custom_emoji':
      if (!/^[1-9]\d{0,19}$/.test(given.custom_emoji_id ?? '')) {
        unparsable('Invalid custom emoji identifier specified');
      }
      return { type, offset, length, custom_emoji_id: given.custom_emoji_id! };
  }
  return unparsable('Unsupported type specified');
}

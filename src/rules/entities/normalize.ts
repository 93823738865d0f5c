/** Makes any set of entities valid: within the text, properly nested, merged and sorted. */
import { type Entity, type FormattedText, isCode, isQuote, isStyle } from './entity.js';

/**
 * Trims a text as clients of the Bot API expect. Removes all white space at the end. At the start, removes only the
 * white space before the first entity. Moves and shortens the entities accordingly. Before that, removes entities that
 * contain only white space, except code, because white space inside entities would not be trimmed.
 */
export function trimFormatted(text: string, entities: readonly Entity[]): FormattedText {
  const visible = withoutBlank(text, entities);
  const trimmed = text.trimEnd();
  let lead = trimmed.length - trimmed.trimStart().length;
  for (const { offset } of visible) lead = Math.min(lead, offset);
  if (lead === 0 && trimmed.length === text.length) return { text, entities: visible };
  return {
    text: trimmed.slice(lead),
    entities: visible.flatMap((entity) => {
      const length = Math.min(entity.offset + entity.length, trimmed.length) - entity.offset;
      if (length <= 0) return [];
      const same = lead === 0 && length === entity.length;
      return same ? entity : { ...entity, offset: entity.offset - lead, length };
    }),
  };
}

const blanks = /\s*/y;

/**
 * Removes entities that contain only white space, except code. Scans each sequence of white space once, even if many
 * entities begin in it.
 */
function withoutBlank(text: string, entities: readonly Entity[]): readonly Entity[] {
  const blank = new Set<Entity>();
  let blankEnd = 0;
  for (const entity of [...entities].sort((a, b) => a.offset - b.offset)) {
    if (entity.offset >= blankEnd) {
      blanks.lastIndex = entity.offset;
      blanks.test(text);
      blankEnd = blanks.lastIndex;
    }
    if (!isCode(entity.type) && endOf(entity) <= blankEnd) blank.add(entity);
  }
  return blank.size === 0 ? entities : entities.filter((entity) => !blank.has(entity));
}

/**
 * Converts entities to their stored form. If two links, codes or quotes overlap, keeps the one that begins first, or
 * the longer one if both begin at the same offset. Merges adjacent styles of the same type. Removes styles from code.
 * Splits styles that would cross another entity.
 */
export function normalizeEntities(entities: readonly Entity[]): Entity[] {
  if (entities.length === 0) return [];
  const solids = keptSolids(entities.filter((entity) => !isStyle(entity.type)).sort(compareEntities));
  const styles = entities.filter((entity) => isStyle(entity.type)).sort(compareEntities);
  const codes = solids.filter(({ type }) => isCode(type));
  const cut = joined(styles)
    .flatMap((style) => outsideOf(codes, style))
    .flatMap((style) => cutWhereCrossed(solids, style));
  return nested([...solids, ...cut].sort(compareEntities));
}

/**
 * Compares entities by their stored order: by offset, then by length (longer first), then by type (quotes, then links
 * and code, then styles).
 */
export function compareEntities(a: Entity, b: Entity): number {
  return a.offset - b.offset || b.length - a.length || rank(a) - rank(b) || (a.type < b.type ? -1 : 1);
}

const rank = ({ type }: Entity): number => (isQuote(type) ? 0 : isStyle(type) ? 2 : 1);

export const endOf = (entity: Entity): number => entity.offset + entity.length;

/**
 * Returns the links, codes and quotes to keep. Unlike styles, these entities are never split. They do not overlap,
 * except that a quote may contain links and code.
 */
function keptSolids(sorted: readonly Entity[]): Entity[] {
  const kept: Entity[] = [];
  let solidEnd = 0;
  let quoteEnd = 0;
  for (const entity of sorted) {
    if (entity.offset < solidEnd) continue;
    if (isQuote(entity.type)) {
      if (entity.offset < quoteEnd) continue;
      quoteEnd = endOf(entity);
    } else {
      if (entity.offset < quoteEnd && endOf(entity) > quoteEnd) continue;
      solidEnd = endOf(entity);
    }
    kept.push(entity);
  }
  return kept;
}

function joined(sorted: readonly Entity[]): Entity[] {
  const latest = new Map<string, number>();
  const result: Entity[] = [];
  for (const style of sorted) {
    const index = latest.get(style.type);
    const former = index === undefined ? undefined : result[index];
    if (former && style.offset <= endOf(former)) {
      const length = Math.max(endOf(former), endOf(style)) - former.offset;
      result[index!] = { ...former, length };
    } else {
      latest.set(style.type, result.push(style) - 1);
    }
  }
  return result;
}

function outsideOf(codes: readonly Entity[], style: Entity): Entity[] {
  const pieces: Entity[] = [];
  let from = style.offset;
  for (const code of codes) {
    if (endOf(code) <= from) continue;
    if (code.offset >= endOf(style)) break;
    if (code.offset > from) pieces.push(piece(style, from, code.offset));
    from = endOf(code);
  }
  if (from < endOf(style)) pieces.push(piece(style, from, endOf(style)));
  return pieces;
}

function cutWhereCrossed(solids: readonly Entity[], style: Entity): Entity[] {
  const pieces: Entity[] = [];
  let from = style.offset;
  for (const solid of solids) {
    if (solid.offset >= endOf(style)) break;
    if (solid.offset > from && endOf(solid) > endOf(style)) {
      pieces.push(piece(style, from, solid.offset));
      from = solid.offset;
    }
  }
  pieces.push(piece(style, from, endOf(style)));
  return pieces;
}

const piece = (style: Entity, from: number, to: number): Entity => ({
  ...style,
  offset: from,
  length: to - from,
});

/** Splits a style that crosses the end of the entity in which it begins, so that no two entities cross. */
function nested(sorted: readonly Entity[]): Entity[] {
  const result: Entity[] = [];
  const waiting = [...sorted].reverse();
  const ends: number[] = [];
  for (let entity = waiting.pop(); entity; entity = waiting.pop()) {
    while (ends.length > 0 && ends.at(-1)! <= entity.offset) ends.pop();
    const outer = ends.at(-1) ?? Number.POSITIVE_INFINITY;
    if (endOf(entity) > outer) {
      insert(waiting, { ...entity, offset: outer, length: endOf(entity) - outer });
      entity = { ...entity, length: outer - entity.offset };
      insert(waiting, entity);
      continue;
    }
    ends.push(endOf(entity));
    result.push(entity);
  }
  return result;
}

function insert(waiting: Entity[], entity: Entity): void {
  let at = waiting.length;
  while (at > 0 && compareEntities(waiting[at - 1]!, entity) < 0) at--;
  waiting.splice(at, 0, entity);
}

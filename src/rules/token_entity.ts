/**
 * The place of a token in the text of a message. The record holds the bot's id and words to show in its stead; who owns the
 * bot when the message is looked at is shown the live token (behaviour §12). No caller can make one: the parsers of entities
 * know no such type.
 */

export interface TokenEntity {
  readonly type: 'bot_token';
  readonly offset: number;
  readonly length: number;
  readonly bot: number;
  readonly [key: string]: unknown;
}

export const tokenEntity = (offset: number, length: number, bot: number): TokenEntity => ({
  ...{ type: 'bot_token' as const, offset, length, bot },
});

interface AnyEntity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly [key: string]: unknown;
}

export const isTokenEntity = (entity: AnyEntity): entity is TokenEntity => entity.type === 'bot_token';

/**
 * A text with live tokens in their places, and its entities moved along; a bot without one in `tokens` keeps its words.
 * Entities are in the order of their offsets and none crosses the edge of a token's place.
 */
export function fillTokens<E extends AnyEntity>(
  text: string,
  entities: readonly E[],
  tokens: ReadonlyMap<number, string>,
): { readonly text: string; readonly entities: readonly E[] } {
  let shown = text;
  let moved = entities;
  for (const place of entities.filter(isTokenEntity).reverse()) {
    const token = tokens.get(place.bot as number);
    if (token === undefined) continue;
    const end = place.offset + place.length;
    const more = token.length - place.length;
    shown = shown.slice(0, place.offset) + token + shown.slice(end);
    moved = moved.map((entity) => {
      if (entity.offset >= end) return { ...entity, offset: entity.offset + more };
      return entity.offset + entity.length >= end ? { ...entity, length: entity.length + more } : entity;
    });
  }
  return { text: shown, entities: moved };
}

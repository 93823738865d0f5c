/**
 * Defines an entity that stands for a bot's token in a message text. The stored message contains the bot's id and words
 * to show instead of the token. Only the bot's current owner sees the valid token (behaviour §12). Callers cannot
 * create such entities, because no parser produces this type.
 */

interface AnyEntity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly [key: string]: unknown;
}

export interface TokenEntity extends AnyEntity {
  readonly type: 'bot_token';
  readonly bot: number;
}

export const tokenEntity = (offset: number, length: number, bot: number): TokenEntity => ({
  ...{ type: 'bot_token' as const, offset, length, bot },
});

export const isTokenEntity = (entity: AnyEntity): entity is TokenEntity => entity.type === 'bot_token';

/**
 * Replaces placeholders with valid tokens, and shifts the other entities. Keeps the replacement words of a placeholder
 * whose bot is not in `tokens`. Entities must be sorted by offset, and none may cross the edge of a placeholder.
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

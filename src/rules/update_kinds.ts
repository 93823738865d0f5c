/** Update kinds, and the bit masks that select the kinds a bot's queue accepts (behaviour §9). */

/** The index of a kind is its bit in a mask. */
export const updateKinds = [
  'message',
  'edited_message',
  'channel_post',
  'edited_channel_post',
  'callback_query',
  'my_chat_member',
  'chat_member',
  'message_reaction_count',
] as const;
export type UpdateKind = (typeof updateKinds)[number];

export const kindBit = (kind: UpdateKind): number => 1 << updateKinds.indexOf(kind);

/** An empty list selects all kinds but the last two. */
export const defaultUpdateMask = updateKinds.slice(0, -2).reduce((mask, kind) => mask | kindBit(kind), 0);

/**
 * The mask for a list of names. Ignores unknown names. If no known name is left, uses the default mask, because a typo
 * must not drop every update.
 */
export function updateMask(names: readonly string[]): number {
  const mask = updateKinds
    .filter((kind) => names.includes(kind))
    .reduce((all, kind) => all | kindBit(kind), 0);
  return mask === 0 ? defaultUpdateMask : mask;
}

/** The names of the kinds in a mask. */
export const maskNames = (mask: number): UpdateKind[] =>
  updateKinds.filter((kind) => (mask & kindBit(kind)) !== 0);

/** The update kinds, and the bit masks that select the kinds that a bot's queue accepts (behaviour §9). */

/** The names of all update kinds. The index of a kind is its bit in a mask. */
export const updateKinds = [
  'message',
  'edited_message',
  'channel_post',
  'edited_channel_post',
  'callback_query',
  'my_chat_member',
  'chat_member',
  'message_reaction_count',
  'chat_join_request',
] as const;
export type UpdateKind = (typeof updateKinds)[number];

export const kindBit = (kind: UpdateKind): number => 1 << updateKinds.indexOf(kind);

/** Kinds that a bot gets only if it lists them. */
const listedOnly: readonly UpdateKind[] = ['chat_member', 'message_reaction_count'];

/**
 * The stored mask of a bot without a list. It stands for `defaultKinds` and never changes, because open queues store
 * it. Thus these bots also get the default kinds that later releases add.
 */
export const defaultUpdateMask = 63;

/** The kinds that a bot without a list gets, as bits. `lua/lib/queue.lua` contains the same number. */
export const defaultKinds = updateKinds
  .filter((kind) => !listedOnly.includes(kind))
  .reduce((mask, kind) => mask | kindBit(kind), 0);

/** Marks a list that would otherwise have the same mask as no list. */
const listedBit = 1 << 30;

/**
 * Returns the mask for a list of names. Ignores unknown names. If all names are unknown, returns the default mask,
 * because a typo must not drop every update.
 */
export function updateMask(names: readonly string[]): number {
  const mask = updateKinds
    .filter((kind) => names.includes(kind))
    .reduce((all, kind) => all | kindBit(kind), 0);
  if (mask === 0) return defaultUpdateMask;
  return mask === defaultUpdateMask ? mask + listedBit : mask;
}

/** Returns the names of the kinds in a mask. */
export const maskNames = (mask: number): UpdateKind[] =>
  updateKinds.filter((kind) => (mask & kindBit(kind)) !== 0);

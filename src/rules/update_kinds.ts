/** Defines the update kinds, and the bit masks that say which kinds a bot's queue accepts (behaviour §9). */

/** The update kinds. The index of a kind in this list is its bit in a mask. */
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
  'poll',
  'poll_answer',
  'inline_query',
  'chosen_inline_result',
  'stopped_message_generation',
] as const;
export type UpdateKind = (typeof updateKinds)[number];

export const kindBit = (kind: UpdateKind): number => 1 << updateKinds.indexOf(kind);

/** The kinds that a bot gets only if it requests them by name. */
const listedOnly: readonly UpdateKind[] = ['chat_member', 'message_reaction_count'];

/**
 * The stored mask of a bot that requested no kinds. This mask stands for `defaultKinds`, so bots with this mask also
 * get the default kinds that later releases add. The mask itself never changes, because open queues store it.
 */
export const defaultUpdateMask = 63;

/** The kinds that a bot gets if it requests no kinds. `lua/lib/queue.lua` contains the same number. */
export const defaultKinds = updateKinds
  .filter((kind) => !listedOnly.includes(kind))
  .reduce((mask, kind) => mask | kindBit(kind), 0);

/** Returns the bits of all kinds that a mask allows. The default mask stands for `defaultKinds`. */
export const kindsOf = (mask: number): number => (mask === defaultUpdateMask ? defaultKinds : mask);

/**
 * This bit is set in every mask that was built from a list of kinds. Without this bit, such a mask could equal the mask
 * of a bot that sent no list.
 */
const listedBit = 1 << 30;

/**
 * Builds a mask. Ignores unknown names. Returns the default mask if all names are unknown, because a typo must not
 * drop every update.
 */
export function updateMask(names: readonly string[]): number {
  const mask = updateKinds
    .filter((kind) => names.includes(kind))
    .reduce((all, kind) => all | kindBit(kind), 0);
  if (mask === 0) return defaultUpdateMask;
  return mask === defaultUpdateMask ? mask + listedBit : mask;
}

export const maskNames = (mask: number): UpdateKind[] =>
  updateKinds.filter((kind) => (mask & kindBit(kind)) !== 0);

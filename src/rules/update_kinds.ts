/** Kinds of updates and the masks by which a queue takes them (behaviour §9). */

/** In the order of their bit in a mask. */
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

/** All but the last two: what `[]` means. */
export const defaultUpdateMask = updateKinds.slice(0, -2).reduce((mask, kind) => mask | kindBit(kind), 0);

/** The mask of a list of names. Unknown names are ignored; when none is left, a slip of the pen must not drop every update. */
export function updateMask(names: readonly string[]): number {
  const mask = updateKinds
    .filter((kind) => names.includes(kind))
    .reduce((all, kind) => all | kindBit(kind), 0);
  return mask === 0 ? defaultUpdateMask : mask;
}

/** The names of a mask. */
export const maskNames = (mask: number): UpdateKind[] =>
  updateKinds.filter((kind) => (mask & kindBit(kind)) !== 0);

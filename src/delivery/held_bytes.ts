/** Divides the memory that one process has for fetched updates among owners, by the rule in `slots.ts`. */
export type HeldBytes = ReturnType<typeof createHeldBytes>;

export function createHeldBytes(max: number) {
  const owners = new Map<number, number>();
  let total = 0;
  return {
    /** Adds to the number of bytes that the owner's updates take up. A negative number frees bytes. */
    add(owner: number, bytes: number): void {
      const own = (owners.get(owner) ?? 0) + bytes;
      total += bytes;
      if (own === 0) owners.delete(owner);
      else owners.set(owner, own);
    },
    /** Returns the number of free bytes minus the number of bytes that the owner's updates take up. May be negative. */
    room: (owner: number): number => max - total - (owners.get(owner) ?? 0),
  };
}

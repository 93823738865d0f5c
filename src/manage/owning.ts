/** The operation of owners that ends a bot. */
import type { Store } from '../store/store.js';

export interface Owning {
  remove(owner: number, id: number): Promise<void>;
}

export const owning = (store: Store): Owning => store.bots as unknown as Owning;

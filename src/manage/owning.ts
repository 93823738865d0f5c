/** The operations of owners that hand a bot over, open it to some people only, or end it. */
import type { Bot } from '../store/control.js';
import type { Store } from '../store/store.js';

type WritePolicy = 'all' | 'selected' | 'owner';

export interface Owning {
  transfer(owner: number, id: number, username: string): Promise<boolean>;
  writeAccess(id: number): Promise<{ readonly policy: WritePolicy; readonly usernames: readonly string[] }>;
  setWriteAccess(owner: number, id: number, policy: WritePolicy, usernames: readonly string[]): Promise<Bot>;
  remove(owner: number, id: number): Promise<void>;
}

export const owning = (store: Store): Owning => store.bots as unknown as Owning;

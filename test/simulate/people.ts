/** The bots, people and chats of a simulated installation. */

import { directChat, sharedChat } from '../../src/store/core/keys.js';
import { createSecrets, type Secrets } from '../../src/store/core/secrets.js';

export const partitions = 2;
export const bots = [100_001, 100_002] as const;
export const users = [5_001, 5_002] as const;
export const group = sharedChat(-100_700);
export const directs = bots.flatMap((bot) => users.map((user) => directChat(bot, user)));

export const makeSecrets = (): Secrets =>
  createSecrets(['ab'.repeat(24)], [{ id: 'k1', key: Buffer.alloc(32, 7) }]);

/** Defines the types of the answers to operator calls, and of parts of these answers. */
import type { Node, Overview } from '../types.gen.js';

export type { History, Node, OperatorDeadLetter, Overview, RankedBot } from '../types.gen.js';

export type Call = NonNullable<Node['front']>['calls'][number];
export type Deliver = NonNullable<Node['deliver']>;
export type RedisServer = NonNullable<Overview['redis']>[number];

/** Defines the types of the answers to operators' calls, and of parts of these answers. */
import type { Node, OperatorBot, Overview } from '../types.gen.js';

export type {
  AdminCall,
  FoundAccount,
  History,
  Node,
  OperatorAttempt,
  OperatorBot,
  OperatorDeadLetter,
  OperatorPerson,
  Overview,
  RankedBot,
} from '../types.gen.js';

export type Call = NonNullable<Node['front']>['calls'][number];
export type Deliver = NonNullable<Node['deliver']>;
export type RedisServer = NonNullable<Overview['redis']>[number];
export type Queue = OperatorBot['queues'][number];
export type Outcome = OperatorBot['outcomes'][number];

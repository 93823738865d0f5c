/** What a process knows of itself as a node: its name, and what each of its roles adds to what it tells. */
import { randomBytes } from 'node:crypto';
import type { NodeTold } from '../wire/operations_results.js';

/** What the roles of a process add. */
export type NodePart = Pick<NodeTold, 'engine' | 'front' | 'deliver' | 'flush'>;

export interface OwnNode {
  readonly id: string;
  /** What a role reads of itself whenever the process tells. */
  readonly parts: Array<() => NodePart>;
  /** What was told last; null before that. */
  told: NodeTold | null;
}

export const ownNode = (): OwnNode => ({ id: randomBytes(6).toString('base64url'), parts: [], told: null });

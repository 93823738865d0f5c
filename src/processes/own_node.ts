/** This process as a node: its name, and what its roles add to its report. */
import { randomBytes } from 'node:crypto';
import type { NodeTold } from '../wire/operations_results.js';

/** The part of a report that a role adds. */
export type NodePart = Pick<NodeTold, 'engine' | 'front' | 'deliver' | 'flush'>;

export interface OwnNode {
  readonly id: string;
  /** Functions of the roles that return their part of each report. */
  readonly parts: Array<() => NodePart>;
  /** The last report; null before the first. */
  told: NodeTold | null;
}

export const ownNode = (): OwnNode => ({ id: randomBytes(6).toString('base64url'), parts: [], told: null });

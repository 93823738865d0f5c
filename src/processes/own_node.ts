/** Holds the name of this process as a node, and the parts that its roles add to its report. */
import { randomBytes } from 'node:crypto';
import type { NodeReport } from '../wire/admin_results.js';

/** Holds the part of a report that a role adds. */
export type NodePart = Pick<NodeReport, 'engine' | 'front' | 'deliver' | 'flush'>;

export interface OwnNode {
  readonly id: string;
  /** One function per role, which returns the role's part of a report. */
  readonly parts: Array<() => NodePart>;
  /** The last report; null before the first one. */
  lastReport: NodeReport | null;
}

export const ownNode = (): OwnNode => ({
  id: randomBytes(6).toString('base64url'),
  parts: [],
  lastReport: null,
});

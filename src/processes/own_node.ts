/** Holds the name of this process as a node, and the parts that its roles add to its report. */
import type { Random } from '../random.js';
import type { NodeReport } from '../wire/admin_results.js';

export type NodePart = Pick<NodeReport, 'engine' | 'front' | 'deliver' | 'flush'>;

export interface OwnNode {
  readonly id: string;
  readonly parts: Array<() => NodePart>;
  lastReport: NodeReport | null;
}

export const ownNode = (random: Random): OwnNode => ({
  id: random.bytes(6).toString('base64url'),
  parts: [],
  lastReport: null,
});

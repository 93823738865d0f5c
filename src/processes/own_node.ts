/** The node name of this process, and the figures that its roles add to its report and to the history. */
import type { Random } from '../random.js';
import type { NodeReport } from '../wire/admin_results.js';

export type NodePart = Pick<NodeReport, 'engine' | 'front' | 'deliver' | 'flush'>;

/** A role's figures for the history, keyed by name. They are whole numbers. */
export interface NodeFigures {
  /** Counters, which only grow. The history adds up the counters of all processes. */
  readonly counts?: Readonly<Record<string, number>>;
  /** Current values. The history keeps the highest value of all processes. */
  readonly levels?: Readonly<Record<string, number>>;
}

export interface OwnNode {
  readonly id: string;
  readonly parts: Array<() => NodePart>;
  readonly figures: Array<() => NodeFigures>;
  lastReport: NodeReport | null;
}

export const ownNode = (random: Random): OwnNode => ({
  id: random.bytes(6).toString('base64url'),
  parts: [],
  figures: [],
  lastReport: null,
});

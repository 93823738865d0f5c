/** Lists the rows of the interface that have no test. Petrel does not have the methods and endpoints of these rows. */

export interface LeftOut {
  readonly row: string;
  /** The missing bot method by name, or the missing endpoint as `POST /api/…`. */
  readonly waitsFor: string;
}

export const leftOut: readonly LeftOut[] = [];

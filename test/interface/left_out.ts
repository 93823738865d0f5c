/**
 * Lists the rows of the interface's tables that have no test, because Petrel does not have their method or endpoint.
 */

export interface LeftOut {
  readonly row: string;
  /** The missing bot method by name, or the missing endpoint as `POST /api/…`. */
  readonly waitsFor: string;
}

export const leftOut: readonly LeftOut[] = [];

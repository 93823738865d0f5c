/** The rows of interface §§2-4 and 6-8 that the table has not: what each waits for is not built. */

export interface LeftOut {
  readonly row: string;
  /** A bot method by its name, or an endpoint as `POST /api/…`. */
  readonly waitsFor: string;
}

export const leftOut: readonly LeftOut[] = [];

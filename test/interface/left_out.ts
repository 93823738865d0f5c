/** Rows of interface §§2-4 and 6-8 that the table leaves out, because the method or endpoint they need is not built. */

export interface LeftOut {
  readonly row: string;
  /** The missing bot method by name, or the missing endpoint as `POST /api/…`. */
  readonly waitsFor: string;
}

export const leftOut: readonly LeftOut[] = [];

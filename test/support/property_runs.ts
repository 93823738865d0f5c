/** Scales the number of random cases of a property. The long tier multiplies this number by PETREL_PROPERTY_FACTOR. */
export const propertyRuns = (runs: number): number =>
  runs * Math.max(1, Number(process.env.PETREL_PROPERTY_FACTOR) || 1);

/** The time limit of one property test in ms. The limit grows with the number of random cases. */
export const property_ms_max = propertyRuns(60_000);

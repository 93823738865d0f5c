/** Shows the figures of a fault test beside its result. */

/** Prints one line when PETREL_FAULTS_REPORT is set. */
export function report(what: string, figures: Readonly<Record<string, unknown>>): void {
  if (!process.env.PETREL_FAULTS_REPORT) return;
  process.stdout.write(`\n[faults] ${what}: ${JSON.stringify(figures)}\n`);
}

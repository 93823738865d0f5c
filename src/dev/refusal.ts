/** Errors that stop `dev`: one sentence with the cause and the remedy. */

/** An expected failure. The message is shown without a stack, and the process exits with code 1. */
export class Refusal extends Error {}

/** The message of anything that was thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

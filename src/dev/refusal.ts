/** Defines the errors that stop `dev`. The message is one sentence with the cause and the remedy. */

/** The error of an expected failure. The message is shown without a stack, and the process exits with code 1. */
export class Refusal extends Error {}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

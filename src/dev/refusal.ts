/** Defines the error that stops `dev`. Its message is one sentence with the cause and the remedy. */

/** An expected failure. The process shows the message without a stack and exits with code 1. */
export class Refusal extends Error {}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What `dev` says when it will not go on: one sentence that names the cause and the way out. */

/** An ordinary refusal. Its message is shown as it stands, without a stack, and the process ends with code 1. */
export class Refusal extends Error {}

/** The text of anything that was thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Defines the settings by which a bot controls its webhook's retries (decision 0072). */

export interface RetryPolicy {
  /** The delay before the first retry, in s. */
  readonly first_delay: number;
  /** After each failed retry, the delay is multiplied by this factor. */
  readonly factor: number;
  /** The age in s at which an update becomes a dead letter. */
  readonly max_age: number;
}

/** Returns whether two policies are equal. Null stands for the default schedule. */
export const isSamePolicy = (one: RetryPolicy | null, other: RetryPolicy | null): boolean =>
  one?.first_delay === other?.first_delay && one?.factor === other?.factor && one?.max_age === other?.max_age;

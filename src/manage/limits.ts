/** The limits of the management bot and of its notices. */
export const manageLimits = {
  manage_question_ms: 15 * 60_000,
} as const;

/** Defines the parameter with which a person starts a bot. */
import { z } from 'zod';
import { ruleLimits as limits } from '../rules/limits.js';

export const startPayload = z
  .string({ error: 'a string' })
  .regex(new RegExp(`^[A-Za-z0-9_-]{1,${limits.start_payload_length_max}}$`), {
    error: `a string of up to ${limits.start_payload_length_max} letters, digits, "_" and "-"`,
  });

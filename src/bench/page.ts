/** x */
import type { Results } from './results.js';
export const pageOf = (results: Results): string => JSON.stringify(results);

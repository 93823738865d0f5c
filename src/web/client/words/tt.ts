/** Words to come. */
export { en as words } from './en.js';
